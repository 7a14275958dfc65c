//! Dates in the names of files and on pages.

/// Returns a time in UTC as text without colons, so that it is one word in every shell and file system.
pub fn stamp(wall_secs: u64) -> String {
    let (days, secs) = (wall_secs / 86_400, wall_secs % 86_400);
    let (year, month, day) = civil(days.min(2_000_000));
    let (hour, minute, second) = (secs / 3600, secs / 60 % 60, secs % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}-{minute:02}-{second:02}")
}

/// Returns year, month and day of the date `days` after 1970-01-01.
//= https://howardhinnant.github.io/date_algorithms.html#civil_from_days
fn civil(days: u64) -> (u64, u64, u64) {
    let z = days + 719_468; // days since 0000-03-01: years that begin in March end in the leap day
    let (era, day_of_era) = (z / 146_097, z % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153; // 0 is March
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    (year, month, day)
}
