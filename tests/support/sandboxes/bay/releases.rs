//! Releases of skills, of which one is active.

use serde_json::{Map, Value, json};

use super::skills::{Shelf, find, is, own, page, put};
use super::{Answer, Reply, bad, error, not_found};
use crate::http::Request;
use crate::sandboxes::shape::Body;
use crate::sandboxes::{clock, wire};

/// The active release of a skill.
pub struct Active {
    pub release: String,
    pub stage: String,
    pub payload: Value,
}

impl Shelf {
    pub fn promote(&mut self, body: &Body, owner: &str, id: &str, now: &str) -> Answer {
        let stage = body.text_or_none("stage").unwrap_or("canary").to_owned();
        if !matches!(stage.as_str(), "canary" | "stable") {
            return Err(bad(&format!("Invalid stage: {stage}")));
        }
        let candidate = self.candidate(owner, id)?;
        if candidate["latest_pass"] != true {
            let details = json!({ "candidate_id": id });
            return Err(error(409, "conflict", "Candidate has not passed its latest evaluation", &details));
        }
        let key = candidate["skill_key"].clone();
        let named = ["upgrade_of_release_id", "upgrade_reason", "change_summary"].map(|name| (name, body.value(name)));
        let own = json!({"skill_key": key, "candidate_id": id, "stage": stage});
        let release = self.release(owner, own, named.map(|(name, value)| (name.to_owned(), value)), now);
        let change = json!({"status": "promoted", "promotion_release_id": release["id"], "updated_at": now});
        put(self.candidate(owner, id)?, change);
        Ok(Reply::json(200, &release))
    }

    /// Makes the next release of a skill, which alone is active.
    fn release<const N: usize>(&mut self, owner: &str, own: Value, more: [(String, Value); N], now: &str) -> Value {
        let rivals = self.releases.iter_mut().filter(|(of, one)| of == owner && one["skill_key"] == own["skill_key"]);
        let mut version = 0;
        for (_, rival) in rivals {
            version = version.max(rival["version"].as_i64().unwrap_or_default());
            rival["is_active"] = json!(false);
        }
        let mut release = json!({
            "id": format!("sr-{}", clock::digits()), "skill_key": null, "candidate_id": null, "version": version + 1,
            "stage": null, "is_active": true, "release_mode": "manual", "promoted_by": owner, "promoted_at": now,
            "rollback_of": null, "auto_promoted_from": null, "health_window_end_at": null,
            "upgrade_of_release_id": null, "upgrade_reason": null, "change_summary": null, "is_deleted": false,
            "deleted_at": null, "deleted_by": null, "delete_reason": null,
        });
        put(&mut release, own);
        put(&mut release, Value::Object(Map::from_iter(more)));
        self.releases.push((owner.to_owned(), release.clone()));
        release
    }

    pub fn list_releases(&self, request: &Request, owner: &str) -> Answer {
        let (key, stage) = (wire::parameter(request, "skill_key"), wire::parameter(request, "stage"));
        let active_only = wire::flag(request, "active_only");
        page(request, own(&self.releases, owner), |one| {
            is(one, "skill_key", key.as_deref())
                && is(one, "stage", stage.as_deref())
                && (!active_only || one["is_active"] == true)
        })
    }

    pub fn roll_back(&mut self, owner: &str, id: &str, now: &str) -> Answer {
        let bad = find(&mut self.releases, owner, "Release", id)?.clone();
        let version = |one: &Value| one["version"].as_i64().unwrap_or_default();
        let earlier = own(&self.releases, owner)
            .filter(|one| one["skill_key"] == bad["skill_key"] && version(one) < version(&bad))
            .max_by_key(|one| version(one));
        let Some(earlier) = earlier else {
            let text = "Rollback is unavailable: no previous release exists";
            return Err(error(409, "conflict", text, &json!({ "release_id": id })));
        };
        let own = json!({
            "skill_key": bad["skill_key"], "candidate_id": earlier["candidate_id"], "stage": earlier["stage"],
        });
        let release = self.release(owner, own, [("rollback_of".to_owned(), json!(id))], now);
        if let Ok(candidate) = self.candidate(owner, bad["candidate_id"].as_str().unwrap_or_default()) {
            put(candidate, json!({"status": "rolled_back", "updated_at": now}));
        }
        Ok(Reply::json(200, &release))
    }

    /// Returns the active release of a skill and what it holds.
    pub fn active(&mut self, owner: &str, key: &str) -> Result<Active, Reply> {
        let found = own(&self.releases, owner).find(|one| one["skill_key"] == key && one["is_active"] == true);
        let release = found.ok_or_else(|| not_found("Active release", key))?.clone();
        let text = |name: &str| release[name].as_str().unwrap_or_default().to_owned();
        let reference = self.candidate(owner, &text("candidate_id"))?["payload_ref"].clone();
        let payload = own(&self.payloads, owner).find(|payload| payload["payload_ref"] == reference);
        let payload = payload.map(|payload| payload["payload"].clone()).unwrap_or_default();
        Ok(Active { release: text("id"), stage: text("stage"), payload })
    }
}
