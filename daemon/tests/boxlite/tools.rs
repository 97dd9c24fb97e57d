//! The tools that move files, in a workspace that holds the daemon's own.

use std::fs;
use std::sync::Arc;

use nano_tests::boxlite::Boxlite;
use nanod::sandbox::private::Private;
use nanod::tools::{Tool, ToolContext, ToolOutcome, download_file, upload_file};
use serde_json::{Value, json};

use crate::kit::booted;
use crate::support::Fixture;

async fn call(tool: impl Tool, context: &ToolContext, arguments: Value) -> Result<String, String> {
    match tool.call(context, arguments.as_object().unwrap().clone()).await.unwrap() {
        ToolOutcome::Done(text) => Ok(text),
        ToolOutcome::Failed(why) => Err(why),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_daemons_own_files_neither_leave_nor_are_replaced() {
    let server = Boxlite::start();
    let mut fixture = Fixture::new();
    for file in ["config/nanod.toml", "config/other", "state/store/db", "keys/openai", "notes"] {
        fixture.write(file, "own");
    }
    fs::hard_link(fixture.path("config/nanod.toml"), fixture.path("hard")).unwrap();
    fixture.link(fixture.path("keys/openai"), "soft");
    let private =
        Private::new(&fixture.path("config/nanod.toml"), &fixture.path("state"), [fixture.path("keys/openai")]);
    fixture.context.private = Arc::new(private);
    fixture.context.sandbox = Some(booted(&server).await);
    fs::write(server.folder().join("theirs"), "theirs").unwrap();
    for file in ["config/nanod.toml", "config/other", "state/store/db", "keys/openai", "hard", "soft"] {
        let up = json!({"local_path": file, "remote_path": "up"});
        let why = call(upload_file::tool("booter:boxlite"), &fixture.context, up).await.unwrap_err();
        assert!(why.contains("nanod's own files"), "{file}: {why}");
    }
    assert!(!server.folder().join("up").exists());
    for file in ["config/nanod.toml", "config/new", "state/store/db", "state/new/deep", "keys/openai", "soft"] {
        let down = json!({"remote_path": "theirs", "local_path": file});
        let why = call(download_file::tool("booter:boxlite"), &fixture.context, down).await.unwrap_err();
        assert!(why.contains("nanod's own files"), "{file}: {why}");
    }
    for file in ["config/nanod.toml", "state/store/db", "keys/openai"] {
        assert_eq!(fixture.read(file), b"own", "{file}");
    }
    let up = json!({"local_path": "notes"});
    assert_eq!(
        call(upload_file::tool("booter:boxlite"), &fixture.context, up).await.unwrap(),
        "uploaded notes to /notes"
    );
    let down = json!({"remote_path": "theirs"});
    call(download_file::tool("booter:boxlite"), &fixture.context, down).await.unwrap();
    assert_eq!(fixture.read("theirs"), b"theirs");
}
