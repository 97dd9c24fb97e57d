//! Sandboxes from create to delete.

use std::fs;
use std::sync::Arc;

use serde_json::json;

use super::state::{Boot, Sandbox};
use super::{Answer, Core, Reply, bad, error, not_found};
use crate::http::Request;
use crate::sandboxes::clock;
use crate::sandboxes::run::Runtime;
use crate::sandboxes::shape::{self, Body, Field, Kind, Need};
use crate::sandboxes::wire;

const ANY: Kind = Kind::Whole(i64::MIN, i64::MAX);
const CREATE: &[Field] =
    &[("profile", Kind::Text, Need::May), ("cargo_id", Kind::Text, Need::Null), ("ttl", ANY, Need::Null)];
const EXTEND: &[Field] = &[("extend_by", ANY, Need::Must)];

impl Core {
    pub fn create(&self, request: &Request, owner: &str) -> Answer {
        let body = shape::body(request, CREATE)?;
        if let Some(cargo) = body.text_or_none("cargo_id") {
            return Err(not_found("Cargo", cargo));
        }
        if body.whole("ttl").is_some_and(|ttl| ttl < 0) {
            return Err(bad("ttl must not be negative"));
        }
        let mut sandbox = self.new_sandbox(&body, owner)?;
        let pooled = sandbox.plan.boot == Boot::Pooled;
        if pooled || sandbox.plan.boot == Boot::Warm {
            sandbox.touch(self.clock.now());
        }
        let reply = Reply::json(201, &sandbox.describe(if pooled { "ready" } else { "idle" }, false));
        self.lock().sandboxes.insert(sandbox.id.clone(), sandbox);
        Ok(reply)
    }

    fn new_sandbox(&self, body: &Body, owner: &str) -> Result<Sandbox, Reply> {
        let state = self.lock();
        let plan = state.plan.clone();
        let asked = body.text_or_none("profile").unwrap_or("python-default");
        let name = plan.profile.as_deref().unwrap_or(asked);
        let found = state.profiles.iter().find(|profile| profile.id == name).cloned();
        let id = format!("sandbox-{}", clock::digits());
        let now = self.clock.now();
        Ok(Sandbox {
            owner: owner.to_owned(),
            profile: found.ok_or_else(|| bad(&format!("Invalid profile: {name}")))?,
            plan,
            cargo: format!("ws-{}", clock::digits()),
            created: now,
            expires: body.whole("ttl").filter(|ttl| *ttl > 0).map(|ttl| clock::after(now, ttl)),
            idle_expires: None,
            session: None,
            runtime: Arc::new(Runtime::new(self.root.join(&id), "/workspace")),
            id,
        })
    }

    pub fn list(&self, request: &Request, owner: &str) -> Answer {
        let limit = wire::number(request, "limit", 50, (1, 200))?;
        let (cursor, status) = (wire::parameter(request, "cursor"), wire::parameter(request, "status"));
        let known = ["idle", "starting", "ready", "failed", "expired"];
        let status = status.filter(|status| known.contains(&status.as_str()));
        let now = self.clock.now();
        let state = self.lock();
        let own = state.sandboxes.values().filter(|sandbox| sandbox.owner == owner);
        let after = own.filter(|sandbox| cursor.as_ref().is_none_or(|cursor| sandbox.id > *cursor));
        let fit: Vec<_> = after.filter(|one| status.as_ref().is_none_or(|status| one.status(now) == status)).collect();
        let page = &fit[..limit.min(fit.len())];
        let next = page.last().filter(|_| fit.len() > limit).map(|sandbox| &sandbox.id);
        let items: Vec<_> = page.iter().map(|sandbox| sandbox.describe(sandbox.status(now), false)).collect();
        Ok(Reply::json(200, &json!({"items": items, "next_cursor": next})))
    }

    pub fn get(&self, owner: &str, id: &str) -> Answer {
        let mut state = self.lock();
        let sandbox = state.find(owner, id)?;
        let now = self.clock.now();
        let reply = Reply::json(200, &sandbox.describe(sandbox.status(now), true));
        // The last look of a stall is still a stalled one; a warm-up ends behind it.
        if sandbox.look() && sandbox.status(now) == "idle" {
            sandbox.touch(now);
        }
        Ok(reply)
    }

    pub fn delete(&self, owner: &str, id: &str) -> Answer {
        let mut state = self.lock();
        let mark = (owner.to_owned(), id.to_owned());
        if state.deleted.contains(&mark) {
            return Ok(Reply::nothing());
        }
        let runtime = Arc::clone(&state.find(owner, id)?.runtime);
        state.sandboxes.remove(id);
        state.deleted.insert(mark);
        drop(state);
        runtime.end();
        Ok(Reply::nothing())
    }

    pub fn extend(&self, request: &Request, owner: &str, id: &str) -> Answer {
        let by = shape::body(request, EXTEND)?.whole("extend_by").unwrap_or_default();
        let mut state = self.lock();
        let sandbox = state.find(owner, id)?;
        if by <= 0 {
            return Err(bad("extend_by must be positive"));
        }
        let now = self.clock.now();
        let Some(end) = sandbox.expires else {
            let details = json!({ "sandbox_id": id });
            return Err(error(409, "sandbox_ttl_infinite", "The sandbox never expires", &details));
        };
        if sandbox.is_expired(now) {
            let details = json!({"sandbox_id": id, "expires_at": clock::stamp(end)});
            return Err(error(409, "sandbox_expired", "The sandbox has expired", &details));
        }
        sandbox.expires = Some(clock::after(end.max(now), by));
        // The real one forgets to ask the session here.
        Ok(Reply::json(200, &sandbox.describe("idle", false)))
    }

    pub fn keep_alive(&self, owner: &str, id: &str) -> Answer {
        let mut state = self.lock();
        let sandbox = state.find(owner, id)?;
        if sandbox.session.is_some() {
            sandbox.idle_expires = Some(clock::after(self.clock.now(), sandbox.profile.idle_timeout));
        }
        Ok(Reply::json(200, &json!({"status": "ok"})))
    }

    pub fn stop(&self, owner: &str, id: &str) -> Answer {
        let mut state = self.lock();
        let sandbox = state.find(owner, id)?;
        (sandbox.session, sandbox.idle_expires) = (None, None);
        let runtime = Arc::clone(&sandbox.runtime);
        drop(state);
        runtime.kill();
        Ok(Reply::json(200, &json!({"status": "stopped"})))
    }

    /// Collects garbage: expired sandboxes go, idle ones lose their compute.
    pub fn collect(&self) -> Reply {
        let now = self.clock.now();
        let mut state = self.lock();
        let idle: Vec<_> = state
            .sandboxes
            .values_mut()
            .filter(|sandbox| !sandbox.is_expired(now) && sandbox.idle_expires.is_some_and(|end| end <= now))
            .map(|sandbox| {
                (sandbox.session, sandbox.idle_expires) = (None, None);
                Arc::clone(&sandbox.runtime)
            })
            .collect();
        let expired: Vec<_> = state.sandboxes.extract_if(.., |_, sandbox| sandbox.is_expired(now)).collect();
        drop(state);
        for runtime in &idle {
            runtime.kill();
        }
        for (_, sandbox) in &expired {
            sandbox.runtime.end();
        }
        let task = |name: &str, count: usize| json!({"task_name": name, "cleaned_count": count, "skipped_count": 0, "errors": []});
        let results = [task("idle_session", idle.len()), task("expired_sandbox", expired.len())];
        let total = idle.len() + expired.len();
        let body = json!({"results": results, "total_cleaned": total, "total_errors": 0, "duration_ms": 0});
        Reply::json(200, &body)
    }

    /// Ends everything; nothing starts any more.
    pub fn end(&self) {
        let sandboxes = std::mem::take(&mut self.lock().sandboxes);
        for sandbox in sandboxes.values() {
            sandbox.runtime.end();
        }
        fs::remove_dir_all(&self.root).ok();
    }
}
