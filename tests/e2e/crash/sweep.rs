//! The driver: which points there are, and one run for each.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use nano_tests::random::Random;

use super::look;
use super::run::Run;
use super::scene::Scene;
use super::story::Story;

/// Pairs of a scene that are tried where neither all are nor `NANO_CRASH_SAMPLE` says how many.
const SAMPLE: u64 = 5;

/// Of so many runs, one may miss a death of its plan.
const MET_OF: usize = 10;
/// The same where the way back from a death, which differs from run to run, is part of the plan.
const PAIRS_MET_OF: usize = 4;

/// What one run has met.
struct Met {
    /// The points of its first daemon, and of its second.
    points: [Vec<String>; 2],
    kills: usize,
}

/// Runs a scene whose daemons die at these points, the first at the first, and checks everything.
fn once(scene: &'static Scene, plan: &[u64]) -> Met {
    let mut run = Run::start(scene, plan);
    (scene.play)(&mut run);
    run.settle();
    let (points, kills) = ([run.points(0), run.points(1)], run.kills);
    run.last_start();
    run.settle();
    let story = Story::read(&mut run);
    look::all(&mut run, &story, scene.lanes, scene.spare);
    (scene.check)(&mut run, &story);
    run.daemon.kill9();
    look::store(&run);
    Met { points, kills }
}

/// Counts runs and collects failures.
struct Tally {
    scene: &'static Scene,
    begun: Instant,
    runs: usize,
    /// Those in which not every death of the plan came to be.
    unmet: Vec<String>,
    failed: Vec<String>,
}

impl Tally {
    fn new(scene: &'static Scene) -> Self {
        Self { scene, begun: Instant::now(), runs: 0, unmet: Vec::new(), failed: Vec::new() }
    }

    fn run(&mut self, plan: &[u64], name: &str) -> Option<Met> {
        self.runs += 1;
        let plan_text = plan.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
        let repeat = format!("NANO_CRASH_SCENARIO={} NANO_CRASH_POINTS={plan_text}", self.scene.name);
        if let Ok(met) = catch_unwind(AssertUnwindSafe(|| once(self.scene, plan))) {
            if met.kills < plan.len() {
                self.unmet.push(format!("{repeat} ({name})"));
            }
            return Some(met);
        }
        eprintln!("^^^ {repeat} ({name})\n");
        self.failed.push(format!("{repeat} ({name})"));
        None
    }

    fn end(self, points: usize, met_of: usize) {
        let Self { scene, begun, runs, unmet, failed } = self;
        let time = begun.elapsed().as_secs_f64();
        eprintln!(
            "{}: {points} points, {runs} runs in {time:.1} s, {} of them without a death",
            scene.name,
            unmet.len()
        );
        assert!(
            failed.is_empty(),
            "{} runs failed; repeat one with its variables:\n{}",
            failed.len(),
            failed.join("\n")
        );
        // Threads take turns as they like, so the last points of one run may be missing in another.
        let most = (runs / met_of).max(1);
        assert!(unmet.len() <= most, "more than {most} runs met not every point of their plan:\n{}", unmet.join("\n"));
    }
}

/// Returns what the environment asks for instead: `None` when this scene is not meant, no points when all are.
fn asked(scene: &Scene) -> Option<Vec<u64>> {
    let meant = std::env::var("NANO_CRASH_SCENARIO").is_ok_and(|name| name != scene.name);
    let points = std::env::var("NANO_CRASH_POINTS").unwrap_or_default();
    (!meant).then(|| points.split(',').filter_map(|point| point.parse().ok()).collect())
}

/// Dies at each point of a scene in turn.
pub fn singles(scene: &'static Scene) {
    let Some(asked) = asked(scene) else { return };
    let mut tally = Tally::new(scene);
    if !asked.is_empty() {
        tally.run(&asked, "as asked");
        return tally.end(0, MET_OF);
    }
    let points = list(scene);
    for (at, name) in (1..).zip(&points) {
        tally.run(&[at], name);
    }
    tally.end(points.len(), MET_OF);
}

/// Returns the points of a clean run, in order.
fn list(scene: &'static Scene) -> Vec<String> {
    let [points, _] = once(scene, &[]).points;
    assert!(points.len() > 4, "a clean run meets too few points: {points:?}");
    points
}

/// Dies at a point of a scene, and again at one of the points on the way back from there.
pub fn pairs(scene: &'static Scene) {
    if asked(scene).is_none_or(|points| !points.is_empty()) {
        return;
    }
    let points = list(scene);
    let mut tally = Tally::new(scene);
    if std::env::var_os("NANO_CRASH_PAIRS").is_some() {
        for (first, name) in (1..).zip(&points) {
            let Some(met) = tally.run(&[first], name) else { continue };
            for (second, again) in (1..).zip(&met.points[1]) {
                tally.run(&[first, second], &format!("{name}, then {again}"));
            }
        }
        return tally.end(points.len(), PAIRS_MET_OF);
    }
    sample(&mut tally, &points);
    tally.end(points.len(), PAIRS_MET_OF);
}

fn sample(tally: &mut Tally, points: &[String]) {
    let number = |name: &str| std::env::var(name).ok().and_then(|number| number.parse().ok());
    let seed = number("NANO_CRASH_SEED").unwrap_or(20_270_306);
    eprintln!("repeat with NANO_CRASH_SEED={seed}"); // Shown when the test fails.
    let mut random = Random::new(seed);
    for _ in 0..number("NANO_CRASH_SAMPLE").unwrap_or(SAMPLE) {
        let first = random.below(points.len() as u64);
        let name = &points[usize::try_from(first).expect("an index")];
        let Some(met) = tally.run(&[first + 1], name) else { continue };
        let second = random.below(met.points[1].len() as u64);
        let again = met.points[1].get(usize::try_from(second).expect("an index")).map_or("", String::as_str);
        tally.run(&[first + 1, second + 1], &format!("{name}, then {again}"));
    }
}
