//! Random cron expressions that know what they mean: text and meaning are made together, so that no parser is needed.

use jiff::civil::Date;

use crate::random::Random;

const MONTHS: [&str; 12] = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: [&str; 8] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"];

/// A field and the values it allows.
#[derive(Debug, Clone, Default)]
pub struct Field {
    /// As it is spelt.
    pub text: String,
    /// What it allows.
    pub values: Vec<u32>,
}

/// An expression.
#[derive(Debug)]
pub struct Spec {
    seconds: Option<Field>,
    /// The minutes.
    pub minutes: Field,
    /// The hours.
    pub hours: Field,
    /// The days of the month, where nothing but numbers says which.
    pub days: Field,
    special_days: Vec<SpecialDay>,
    /// The months.
    pub months: Field,
    /// The days of the week, 0 to 7, where nothing but numbers says which.
    pub weekdays: Field,
    special_weekdays: Vec<SpecialWeekday>,
    both: bool,
}

#[derive(Debug)]
enum SpecialDay {
    Last,
    LastWorkday,
    Nearest(u32),
}

#[derive(Debug)]
enum SpecialWeekday {
    Nth(u32, u32),
    Last(u32),
}

impl Spec {
    /// Makes one that may say anything.
    pub fn any(random: &mut Random) -> Self {
        let seconds = (random.below(4) == 0).then(|| field(random, 0, 59, &[]));
        let (days, special_days) = match random.below(8) {
            0 => special_days(random),
            1..=3 => (field(random, 1, 31, &[]), vec![]),
            _ => (star(random, 1, 31), vec![]),
        };
        let (weekdays, special_weekdays) = match random.below(8) {
            0 => special_weekdays(random),
            1..=3 => (field(random, 0, 7, &WEEKDAYS), vec![]),
            _ => (star(random, 0, 7), vec![]),
        };
        let (minutes, hours) = (field(random, 0, 59, &[]), field(random, 0, 23, &[]));
        let months = if random.below(3) == 0 { field(random, 1, 12, &MONTHS) } else { star(random, 1, 12) };
        let both = random.below(4) == 0;
        Self { seconds, minutes, hours, days, special_days, months, weekdays, special_weekdays, both }
    }

    /// Makes one whose hours lie about `hour`, every day more often than not.
    pub fn near_hour(random: &mut Random, hour: u32) -> Self {
        let mut spec = Self::any(random);
        if random.below(3) > 0 {
            let hours = [hour, (hour + 1) % 24, (hour + 2) % 24, 0];
            let (one, other) = (random.pick(&hours), random.pick(&hours));
            let (low, high) = (one.min(other), one.max(other));
            let text = random.pick(&[format!("{one}"), format!("{one},{other}"), format!("{low}-{high}")]);
            let values = if text.contains('-') { (low..=high).collect() } else { vec![one, other] };
            let values = if text.contains([',', '-']) { values } else { vec![one] };
            spec.hours = Field { text, values };
        }
        if random.below(4) > 0 {
            (spec.days, spec.special_days) = (star(random, 1, 31), vec![]);
            (spec.weekdays, spec.special_weekdays) = (star(random, 0, 7), vec![]);
            spec.months = star(random, 1, 12);
        }
        spec
    }

    /// Returns the expression.
    pub fn text(&self) -> String {
        let seconds = self.seconds.as_ref().map_or(String::new(), |field| format!("{} ", field.text));
        let both = if self.both { "+" } else { "" };
        let Self { minutes, hours, days, months, weekdays, .. } = self;
        format!("{seconds}{} {} {} {} {both}{}", minutes.text, hours.text, days.text, months.text, weekdays.text)
    }

    /// Returns the seconds.
    pub fn seconds(&self) -> Vec<u32> {
        self.seconds.as_ref().map_or(vec![0], |field| field.values.clone())
    }

    /// Whether it fires in every real hour, rather than at fixed times.
    pub fn every_hour(&self) -> bool {
        self.hours.text.contains('*')
    }

    /// Whether it allows any day of the month, of the week.
    pub fn free(&self) -> (bool, bool) {
        let is_free = |field: &Field| field.text == "*" || field.text == "?";
        (is_free(&self.days), is_free(&self.weekdays))
    }

    /// Whether numbers say everything and all fields must fit, as in systemd.
    pub fn is_plain(&self) -> bool {
        let (any_day, any_weekday) = self.free();
        self.special_days.is_empty() && self.special_weekdays.is_empty() && (any_day || any_weekday || self.both)
    }

    /// Whether it fires on this day: where both fields say something either will do, unless a `+` wants both.
    pub fn fits(&self, date: Date) -> bool {
        if !self.months.values.contains(&date.month().unsigned_abs().into()) {
            return false;
        }
        match self.free() {
            (true, true) => true,
            (true, false) => self.fits_weekday(date),
            (false, true) => self.fits_day(date),
            (false, false) if self.both => self.fits_day(date) && self.fits_weekday(date),
            (false, false) => self.fits_day(date) || self.fits_weekday(date),
        }
    }

    fn fits_day(&self, date: Date) -> bool {
        self.days.values.contains(&day(date))
            || self.special_days.iter().any(|special| match special {
                SpecialDay::Last => date == date.last_of_month(),
                SpecialDay::LastWorkday => date == nearest_workday(date.last_of_month()),
                SpecialDay::Nearest(day) => {
                    let wanted = date.with().day(i8::try_from(*day).expect("a day")).build();
                    wanted.is_ok_and(|wanted| nearest_workday(wanted) == date)
                }
            })
    }

    fn fits_weekday(&self, date: Date) -> bool {
        let weekday: u32 = date.weekday().to_sunday_zero_offset().unsigned_abs().into();
        let is = |other: u32| other % 7 == weekday;
        self.weekdays.values.iter().any(|other| is(*other))
            || self.special_weekdays.iter().any(|special| match special {
                SpecialWeekday::Nth(other, nth) => is(*other) && day(date).div_ceil(7) == *nth,
                SpecialWeekday::Last(other) => is(*other) && day(date) + 7 > day(date.last_of_month()),
            })
    }
}

fn day(date: Date) -> u32 {
    date.day().unsigned_abs().into()
}

/// Returns the day from Monday to Friday that is nearest to a date, in the same month.
fn nearest_workday(wanted: Date) -> Date {
    let distance = |date: &Date| (day(*date).abs_diff(day(wanted)), *date);
    let workday = |date: &Date| date.weekday().to_monday_zero_offset() < 5;
    let month = wanted.first_of_month().series(jiff::Span::new().days(1)).take_while(|d| d.month() == wanted.month());
    month.filter(workday).min_by_key(distance).expect("a month has a Monday")
}

fn star(random: &mut Random, low: u32, high: u32) -> Field {
    let text = if random.below(8) == 0 && matches!((low, high), (1, 31) | (0, 7)) { "?" } else { "*" };
    Field { text: text.to_owned(), values: (low..=high).collect() }
}

/// Makes a field of numbers, some of them spelt as names.
fn field(random: &mut Random, low: u32, high: u32, names: &[&str]) -> Field {
    match random.below(10) {
        0..=2 => Field { text: "*".to_owned(), values: (low..=high).collect() },
        3..=7 => item(random, low, high, names),
        _ => {
            let items: Vec<_> = (0..random.within(2, 4)).map(|_| item(random, low, high, names)).collect();
            let texts: Vec<_> = items.iter().map(|item| item.text.as_str()).collect();
            let mut values: Vec<u32> = items.iter().flat_map(|item| item.values.clone()).collect();
            values.sort_unstable();
            values.dedup();
            Field { text: texts.join(","), values }
        }
    }
}

fn item(random: &mut Random, low: u32, high: u32, names: &[&str]) -> Field {
    let (start, step) = (random.within(low, high - 1), random.within(1, high - low + 3));
    let end = random.within(start + 1, high);
    let mut spell = |value: u32| match names.get((value - low) as usize) {
        Some(name) if random.below(2) == 0 => (*name).to_owned(),
        Some(name) if random.below(2) == 0 => name.to_lowercase(),
        _ => value.to_string(),
    };
    let (first, last) = (spell(start), spell(end));
    let (text, values) = match random.below(6) {
        0 => (format!("*/{step}"), (low..=high).step_by(step as usize).collect()),
        1 => (format!("{first}-{last}"), (start..=end).collect()),
        2 => (format!("{first}-{last}/{step}"), (start..=end).step_by(step as usize).collect()),
        _ => (first, vec![start]),
    };
    Field { text, values }
}

/// Makes days of the month with `L`, `LW` or `W`, perhaps beside a number.
fn special_days(random: &mut Random) -> (Field, Vec<SpecialDay>) {
    let near = random.within(1, 31);
    let (text, special) = match random.below(4) {
        0 => ("L".to_owned(), SpecialDay::Last),
        1 => ("LW".to_owned(), SpecialDay::LastWorkday),
        _ => (format!("{near}W"), SpecialDay::Nearest(near)),
    };
    (beside(random, text, 1, 31), vec![special])
}

/// Makes days of the week with `#` or `L`, perhaps beside a number.
fn special_weekdays(random: &mut Random) -> (Field, Vec<SpecialWeekday>) {
    let (weekday, nth) = (random.within(0, 7), random.within(1, 5));
    let spelt = if random.below(2) == 0 { WEEKDAYS[weekday as usize].to_owned() } else { weekday.to_string() };
    let (text, special) = match random.below(3) {
        0 => (format!("{spelt}L"), SpecialWeekday::Last(weekday)),
        _ => (format!("{spelt}#{nth}"), SpecialWeekday::Nth(weekday, nth)),
    };
    (beside(random, text, 0, 7), vec![special])
}

fn beside(random: &mut Random, special: String, low: u32, high: u32) -> Field {
    let number = random.within(low, high);
    match random.below(3) {
        0 => Field { text: format!("{special},{number}"), values: vec![number] },
        _ => Field { text: special, values: vec![] },
    }
}
