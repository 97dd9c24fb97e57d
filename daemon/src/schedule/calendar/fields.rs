//! Forms that the cron parser takes and means otherwise than they read: they are refused before it sees them.

/// The fields of an expression from the last backwards, and the names that may stand in each.
const NAMES: [(&str, &str); 6] = [
    ("weekday", "SUN MON TUE WED THU FRI SAT L"),
    ("month", "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC"),
    ("day of the month", "L W LW"),
    ("hour", ""),
    ("minute", ""),
    ("second", ""),
];

/// Returns why an expression of fields does not mean what it seems to.
pub fn check(expr: &str) -> Result<(), String> {
    if expr.trim_start().starts_with('@') {
        return Ok(());
    }
    for (field, (what, names)) in expr.split_whitespace().rev().zip(NAMES) {
        field.split(',').try_for_each(|item| check_item(item, what, names))?;
        let items = || field.split(',').map(str::to_ascii_uppercase);
        if items().any(|item| item == "L") && items().any(|item| item == "LW") {
            return Err("L and LW in one list; make two schedules".into());
        }
    }
    Ok(())
}

fn check_item(item: &str, what: &str, names: &str) -> Result<(), String> {
    if item.is_empty() {
        return Err(format!("an empty item in the list for the {what}"));
    }
    let letters = item.split(|one: char| !one.is_ascii_alphabetic()).filter(|word| !word.is_empty());
    for word in letters {
        let is_name = |word: &str| names.split(' ').any(|name| name.eq_ignore_ascii_case(word));
        // The last one of a weekday: SUNL.
        let is_last = what == "weekday" && word.strip_suffix(['L', 'l']).is_some_and(is_name);
        if !is_name(word) && !is_last {
            let may = if names.is_empty() { "numbers stand there".into() } else { format!("there may be {names}") };
            return Err(format!("`{word}` in the field for the {what}; {may}"));
        }
    }
    match item.split_once('-') {
        // Read as 0-7, every day.
        Some((from, to)) if from.eq_ignore_ascii_case("SUN") && from.eq_ignore_ascii_case(to) => {
            Err(format!("`{item}` is a range of one; write {from}"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn forms() {
        for good in [
            "* * * * *",
            "0 0 * * SUN",
            "0 0 * JAN-MAR mon,Fri",
            "0 0 L * *",
            "0 0 LW * *",
            "0 0 15W,L * *",
            "0 0 * * 5L",
            "0 0 * * MON#2",
            "0 0 * * 5#L",
            "0 0 * * SUNL,5",
            "0 0 11-11 * MON-MON",
            "*/5 1-3 ? 1/2 0-7",
            "30 0 0 1 1 *",
            "@daily",
            "  1,2   * * * *  ",
        ] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for (bad, says) in [
            ("MON 0 * * *", "`MON` in the field for the minute; numbers stand there"),
            ("0 JAN * * *", "`JAN` in the field for the hour"),
            ("FEB 0 0 * * *", "`FEB` in the field for the second"),
            ("0 0 MON * *", "`MON` in the field for the day of the month; there may be L W LW"),
            ("0 0 * SUN *", "`SUN` in the field for the month"),
            ("0 0 * * JAN", "`JAN` in the field for the weekday"),
            ("1, * * * *", "an empty item in the list for the minute"),
            ("1,,15 * * * *", "an empty item"),
            ("0 0 ,1 * *", "an empty item in the list for the day of the month"),
            ("0 0 * * SUN-SUN", "`SUN-SUN` is a range of one; write SUN"),
            ("0 0 L,LW * *", "L and LW in one list"),
            ("0 0 lw,1,l * *", "L and LW in one list"),
        ] {
            assert!(check(bad).is_err_and(|why| why.contains(says)), "{bad}: {:?}", check(bad));
        }
    }
}
