//! The real programs from end to end, with a scripted model: one file for each verb or theme.
#![expect(clippy::expect_used, clippy::panic, reason = "tests")]

mod again;
mod agents;
mod autostart;
mod boxlite;
mod catchup;
mod clients;
mod closing;
mod cron;
mod ctl;
mod delete;
mod demo;
mod durable;
mod events;
mod followup;
mod followup_acts;
mod followup_agent;
mod followup_events;
mod followup_files;
mod followup_kit;
mod followup_overlap;
mod followup_sessions;
mod framing;
mod keys;
mod kill;
mod loop_case;
mod loop_check;
mod loop_table;
mod profile;
mod retried;
mod sessions;
mod shutdown;
mod skills;
mod steering;
mod steering_file;
mod tools;
