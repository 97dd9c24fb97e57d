//! What is wrong with a file is told with its place.

use super::*;

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn problems_name_file_line_and_key() {
    refused(&[
        ("[daemon]\n\nworkspace = []", "3: unknown key \"workspace\" in [daemon]; did you mean \"workspaces\"?"),
        ("[deamon]", "1: unknown key \"deamon\" at the top; did you mean \"daemon\"?"),
        ("[steering]\nqwertyuiop = 1", "2: unknown key \"qwertyuiop\" in [steering]; known are enabled, file"),
        ("[models.a]\nmodel=\"a\"\nmodle=\"a\"", "3: unknown key \"modle\" in [models.a]; did you mean \"model\"?"),
        ("[agents.x]\nMax_Turns = 1", "2: unknown key \"Max_Turns\" in [agents.x]; did you mean \"max_turns\"?"),
        (
            "[booters.shipyard]\nend_point = \"\"",
            "2: unknown key \"end_point\" in [booters.shipyard]; did you mean \"endpoint\"?",
        ),
        ("[booters.shipyad]", "1: unknown key \"shipyad\" in [booters]; did you mean \"shipyard\"?"),
        ("[tools.t]\nargv = [\"a\"]\nargs = []", "3: unknown key \"args\" in [tools.t]; did you mean \"argv\"?"),
        ("[mcp.m]\nurl = \"http://u\"\nheader = {}", "3: unknown key \"header\" in [mcp.m]; did you mean \"headers\"?"),
        ("[web_search]\nprovider = \"x\"", "2: provider is not valid: \"x\" is none of searxng, brave"),
        ("[web_search]\nprovider = \"searxng\"", "1: [web_search] needs base_url, the address of the SearXNG instance"),
        ("[web_search]\nprovider = \"brave\"", "1: [web_search] needs api_key, api_key_env or api_key_file"),
        (
            "[web]\nallow = [\"http://a\"]",
            "2: allow holds \"http://a\", which is no host such as wiki.intern, 10.1.2.3:8080 or 10.1.0.0/16",
        ),
        ("[http_request]\nmethods = []", "1: [http_request] needs hosts"),
        (
            "[http_request]\nhosts = []\nmethods = [\"get\"]",
            "3: methods holds \"get\"; there are GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS",
        ),
        ("[web_search]\nprovder = \"u\"", "2: unknown key \"provder\" in [web_search]; did you mean \"provider\"?"),
        ("[skills]\npath = []", "2: unknown key \"path\" in [skills]; did you mean \"paths\"?"),
        ("[daemon]\ndrain = 20", "2: drain must be a duration such as \"90s\", \"10m\" or \"1h30m\""),
        ("[daemon]\ndrain = \"0s\"", "2: drain must be a duration such as \"90s\", \"10m\" or \"1h30m\""),
        (
            "[daemon]\nmax_line = \"16 MiBs\"",
            "2: max_line must be a size such as \"16MiB\", from 1024 to 1073741824 bytes",
        ),
        ("[daemon]\nmax_line = 5", "2: max_line must be a size such as \"16MiB\", from 1024 to 1073741824 bytes"),
        ("[daemon]\nworkspaces = \"/x\"", "2: workspaces must be a list of strings"),
        ("[daemon]\nworkspaces = [1]", "2: workspaces must be a list of strings"),
        ("[daemon]\nworkspaces = [\"\"]", "2: workspaces holds an empty path"),
        (
            "[daemon]\ntime_zone = \"Mars/X\"",
            "2: time_zone is not valid: \"Mars/X\" is not a known time zone; give one such as Europe/Berlin",
        ),
        ("daemon = 3", "1: daemon must be a table"),
        ("models = 3", "1: models must be tables"),
        ("models.a = 3", "1: models.a must be a table"),
        ("[models.a]", "1: [models.a] needs model"),
        ("[models.a]\napi = \"replay\"", "1: [models.a] needs cassette"),
        ("[models.a]\nmodel = \"\"", "2: model must be a string that is not empty"),
        (
            "[models.a]\nmodel=\"m\"\napi = \"anthropic\"",
            "3: api \"anthropic\" cannot be spoken by this version yet; use \"openai\" or \"replay\"",
        ),
        ("[models.a]\nmodel=\"m\"\napi = \"opneai\"", "3: api \"opneai\" is unknown; did you mean \"openai\"?"),
        ("[models.a]\nmodel=\"m\"\nbase_url = \"localhost\"", "3: base_url must start with http:// or https://"),
        ("[models.a]\nmodel=\"m\"\nmax_output = 0", "3: max_output must be a whole number from 1 to 9007199254740991"),
        ("[models.a]\nmodel=\"m\"\nstream = 1", "3: stream must be true or false"),
        ("[models.a]\nmodel=\"m\"\nprice_input = -1", "3: price_input must be a number that is not negative"),
        ("[models.a]\nmodel=\"m\"\nprice_input = nan", "3: price_input must be a number that is not negative"),
        ("[models.a]\nmodel=\"m\"\nfallback = [\"a\"]", "3: fallback names the model itself"),
        (
            "[models.a]\nmodel=\"m\"\nfallback = [\"b\"]",
            "3: fallback names the unknown model \"b\"; did you mean \"a\"?",
        ),
        (
            "[models.a]\nmodel=\"m\"\napi_key_env = \"NO_KEY\"",
            "3: api_key_env names the variable NO_KEY, which is not set",
        ),
        (
            "[models.a]\nmodel=\"m\"\napi_key = \"x\"\napi_key_env = \"FAST_KEY\"",
            "1: [models.a] has more than one of api_key, api_key_env and api_key_file; keep one",
        ),
        ("[models.\"a b\"]\nmodel=\"m\"", "1: [models.a b] has a bad name; 1 to 64 of A-Z a-z 0-9 . _ - are allowed"),
        ("[agents.a]\nmodel = \"m\"", "2: model names \"m\", but the file has no [models.NAME]"),
        ("[agents.a]\nlevel = \"root\"", "2: level is not valid: `root` is none of read-only, workspace-write, host"),
        ("[agents.a]\ntool_mode = \"\"", "2: tool_mode is not valid: `` is none of core, readonly, all"),
        ("[agents.a]\nresume = \"yes\"", "2: resume is not valid: `yes` is none of auto, ask, never"),
        ("[agents.a]\nbooter = \"lokal\"", "2: booter \"lokal\" is unknown; did you mean \"local\"?"),
        ("[agents.a]\nbudget = 0", "2: budget must be more than 0"),
        ("[agents.a]\nskills = [\"git\", \" \"]", "2: skills holds an empty name"),
        ("[agents.a]\nmax_turns = 0", "2: max_turns must be a whole number from 1 to 4294967295"),
        ("[agents.a]\nmax_turns = 4294967296", "2: max_turns must be a whole number from 1 to 4294967295"),
        ("[agents.a]\nexec_timeout = \"1h\"", "2: exec_timeout is above exec_timeout_max; raise that too"),
        ("[agents.a]\ntools = [\"a b\"]", "2: tools names \"a b\"; a tool's name is 1 to 64 of A-Z a-z 0-9 _ -"),
        ("[agents.a]\ntools = [\"exec*\"]", "2: tools names \"exec*\"; a tool's name is 1 to 64 of A-Z a-z 0-9 _ -"),
        ("[booters.boxlite]\nnetwork = []", "2: network names no host; write \"off\" for none"),
        ("[booters.boxlite]\nnetwork = [\"a\", \" \"]", "2: network holds an empty name of a host"),
        ("[steering]\nfile = \"../x\"", "2: file must be a plain file name"),
        ("[mcp.m]\nurl = \"u\"", "2: url must be an address such as \"http://127.0.0.1:8000/mcp\""),
        ("[mcp.m]\nurl = \"http://u\"\nargs = []", "3: args has no meaning beside url"),
        ("[mcp.m]\ncommand = \"c\"\nheaders = {}", "3: headers has no meaning beside command"),
        ("[mcp.m]\ncommand = \"c\"\nenv = {\"A=B\" = \"x\"}", "3: env holds a name that is none, or a NUL byte"),
        (
            "[mcp.m__n]\ncommand = \"c\"",
            "1: [mcp.m__n] has a bad name; a server's is 1 to 24 of A-Z a-z 0-9 _ -, no _ at its ends and no two together",
        ),
        (
            "[mcp.\"m.n\"]\ncommand = \"c\"",
            "1: [mcp.m.n] has a bad name; a server's is 1 to 24 of A-Z a-z 0-9 _ -, no _ at its ends and no two together",
        ),
        ("[mcp.m]", "1: [mcp.m] needs either command or url"),
        ("[mcp.m]\ncommand = \"c\"\nenv = {A = 1}", "3: env must be a table of strings"),
    ]);
}

#[test]
fn problems_of_configured_tools() {
    refused(&[
        ("[tools.t]", "1: [tools.t] needs argv"),
        ("[tools.t]\nargv = []", "2: argv must not be empty"),
        (
            "[tools.t]\nargv = [\"{a}\"]\ninput_schema = {type = \"object\", properties = {a = {}}}",
            "2: argv must begin with the name of a program, which no argument may choose",
        ),
        ("[tools.t]\nargv = [\"-c\"]", "2: argv must begin with the name of a program, which no argument may choose"),
        ("[tools.t]\nargv = [\" \"]", "2: argv must begin with the name of a program, which no argument may choose"),
        ("[tools.t]\nargv = [\"a\", \"{b}\"]", "2: argv has a place for \"b\", which is no property of input_schema"),
        ("[tools.t]\nargv = [\"a\", \"{b\"]", "2: argv has a lone brace in \"{b\"; write {{ or }} for the character"),
        ("[tools.t]\nargv = [\"a\", \"b}\"]", "2: argv has a lone brace in \"b}\"; write {{ or }} for the character"),
        ("[tools.t]\nargv = [\"a\", \"{}\"]", "2: argv has a lone brace in \"{}\"; write {{ or }} for the character"),
        ("[tools.t]\nargv = [\"a\", \"b\\u0000\"]", "2: argv holds a NUL byte"),
        (
            "[tools.t]\nargv = [\"a\", \"-{b}\"]\ninput_schema = {type = \"object\", properties = {b = {type = \"array\"}}}",
            "2: argv has the list \"b\" within a word; give it one of its own",
        ),
        ("[tools.t]\nargv = [\"a\"]\ninput_schema = {type = \"array\"}", "3: input_schema must have type = \"object\""),
        (
            "[tools.t]\nargv = [\"a\"]\ninput_schema = 3",
            "3: input_schema must be a table, or the text of a JSON object",
        ),
        (
            "[tools.t]\nargv = [\"a\"]\ninput_schema = \"[]\"",
            "3: input_schema must be a table, or the text of a JSON object",
        ),
        (
            "[tools.t]\nargv = [\"a\"]\noutput_schema = 3",
            "3: output_schema must be a table, or the text of a JSON object",
        ),
        (
            "[tools.\"t.t\"]\nargv = [\"a\"]",
            "1: [tools.t.t] has a bad name; a tool's is 1 to 64 of A-Z a-z 0-9 _ - and does not begin with mcp__",
        ),
        (
            "[tools.mcp__a__b]\nargv = [\"a\"]",
            "1: [tools.mcp__a__b] has a bad name; a tool's is 1 to 64 of A-Z a-z 0-9 _ - and does not begin with mcp__",
        ),
    ]);
}

#[track_caller]
fn refused(rows: &[(&str, &str)]) {
    for (text, expected) in rows {
        let error = read(text).err().unwrap_or_else(|| panic!("accepted: {text}"));
        assert_eq!(error.to_string(), format!("/etc/nanod/nanod.toml:{expected}"), "{text}");
    }
}

#[test]
fn syntax_errors_and_duplicates_have_a_line() {
    for (text, line) in
        [("[daemon]\ndrain = ", 2), ("a = 1\na = 2", 2), ("[models.a]\n\n[models.a]\n", 3), ("\n\n%", 3)]
    {
        let error = read(text).unwrap_err().to_string();
        assert!(error.starts_with(&format!("/etc/nanod/nanod.toml:{line}: ")), "{text}: {error}");
    }
}

#[test]
fn all_problems_are_told_in_order() {
    let error = read("[skills]\nwatch = 1\n[daemon]\nx = 1\ndrain = 1\n").unwrap_err();
    let lines: Vec<_> = error.problems.iter().map(|line| line.split(':').nth(1).unwrap()).collect();
    assert_eq!(lines, ["2", "4", "5"]);
}
