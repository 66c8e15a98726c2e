use super::*;
use crate::pipeline::climbs::{COMPUTES, READS, WRITES};

/// A pool under a load, in virtual time.
struct Model {
    climb: Climb,
    servers: usize,
    now: Time,
    transactions: f64,
    noise: u64,
    /// Chance makes it so much more or less at most.
    spread: f64,
    /// What holds, and since when; what was reached before, which is not more for [`LAG`].
    held: (Depths, Time),
    before: f64,
    /// In one of so many moments another machine has the processor half of the time.
    robbed: Option<u64>,
    /// Until then all is slower: least, by half, at the beginning.
    warm: Time,
    /// In which slice each client has last sent.
    last: [u32; CLIENTS as usize],
}

const BEGINNING: Time = Time(1_000_000);

/// Processors are shared out anew only then.
const LAG: Duration = Duration::from_millis(200);

/// What a load does under some depths: transactions a second.
type Load = fn(Depths) -> f64;

/// As many as always wait.
const CLIENTS: f64 = 64.0;

const TICK: Duration = Duration::from_millis(100);

impl Model {
    fn new(servers: usize) -> Self {
        Self::beginning_with(READS, servers)
    }

    fn beginning_with(depths: Depths, servers: usize) -> Self {
        Self {
            climb: Climb::new(depths, COMPUTES),
            servers,
            now: BEGINNING,
            transactions: 0.0,
            noise: 0x9e37_79b9_7f4a_7c15,
            spread: 0.03,
            held: (depths, Time::ZERO),
            before: f64::MAX,
            robbed: None,
            warm: BEGINNING,
            last: [0; CLIENTS as usize],
        }
    }

    fn depths(&self) -> Depths {
        self.climb.depths(self.servers)
    }

    /// What chance makes of it.
    fn chance(&mut self) -> f64 {
        self.noise ^= self.noise << 13;
        self.noise ^= self.noise >> 7;
        self.noise ^= self.noise << 17;
        let robbed = self.robbed.is_some_and(|times| (self.noise >> 32).is_multiple_of(times));
        let chance = ((self.noise % 1_000) as f64 / 1_000.0 - 0.5) * 2.0 * self.spread;
        (1.0 + chance) * if robbed { 0.5 } else { 1.0 }
    }

    /// What is lost while caches fill.
    fn warmth(&self) -> f64 {
        match self.now < self.warm {
            true => {
                let part = (self.now - BEGINNING).div_duration_f64(self.warm - BEGINNING);
                f64::midpoint(1.0, part)
            }
            false => 1.0,
        }
    }

    /// The rate under what holds now.
    fn reaches(&mut self, depths: Depths, load: Load) -> f64 {
        if depths.hot != self.held.0.hot {
            self.before = load(self.held.0);
            self.held = (depths, self.now);
        }
        let is_late = self.now - self.held.1 < LAG;
        if is_late { load(depths).min(self.before) } else { load(depths) }
    }

    /// So long there is this load. Gives how many transactions there were, and how many there
    /// would have been with the best depths from the beginning.
    fn run(&mut self, time: Duration, load: Load) -> (f64, f64) {
        let best = best(self.servers, load);
        let (mut done, mut most) = (0.0, 0.0);
        for _ in 0..time.as_millis() / TICK.as_millis() {
            let depths = self.depths();
            let rate = self.reaches(depths, load) * self.chance() * self.warmth();
            let units = rate * TICK.as_secs_f64();
            let took = Duration::from_secs_f64(CLIENTS / rate);
            let full = (depths.hot * depths.depth) as f64 <= CLIENTS;
            let on_each = (CLIENTS as usize / depths.hot).clamp(1, depths.depth);
            for unit in 0..units as usize {
                let last = &mut self.last[unit % self.last.len()];
                self.climb.sent(depths.hot, full, on_each - 1, last);
                self.climb.answered(took);
            }
            self.transactions += units;
            done += units;
            most += best * TICK.as_secs_f64();
            self.now = self.now + TICK;
            self.climb.tick(self.now, self.transactions as u64, self.servers);
        }
        (done, most)
    }

    /// What part of the best it reaches for so long, where it had five seconds to find it.
    fn reaches_then(&mut self, time: Duration, load: Load) -> f64 {
        self.run(Duration::from_secs(5), load);
        let (done, most) = self.run(time, load);
        done / most
    }
}

/// The rate under the best depths that there are.
fn best(servers: usize, load: Load) -> f64 {
    let depths = (1..=servers).flat_map(|hot| [1, 2, 4, 8, 16, 32, 64].map(|depth| (hot, depth)));
    depths.map(|(hot, depth)| load(Depths { hot, depth })).fold(0.0, f64::max)
}

/// Two processors, statements that compute: more servers than processors cost a little each, and
/// a server that has nothing to do next sleeps.
fn computes(Depths { hot, depth }: Depths) -> f64 {
    let hot = hot as f64;
    let busy = (hot / 3.0).min(1.0);
    let asleep = 1.0 + 2.0 / depth as f64;
    60_000.0 * busy / asleep / (1.0 + 0.03 * (hot - 3.0).max(0.0))
}

/// Commits that wait for a disk: it is the number of servers that counts.
fn commits(Depths { hot, .. }: Depths) -> f64 {
    let hot = hot as f64;
    100.0 * hot / (1.0 + hot / 80.0)
}

/// Servers that are far away: what counts is how much is under way.
fn is_far(Depths { hot, depth }: Depths) -> f64 {
    let under_way = ((hot * depth) as f64).min(CLIENTS);
    under_way / 0.0011
}

/// Two processors and few clients: one server has the one, and all else the other.
fn is_small(Depths { hot, depth }: Depths) -> f64 {
    let asleep = 1.0 + 2.0 / depth as f64;
    45_000.0 / asleep / (1.0 + 0.35 * (hot as f64).ln())
}

/// The same where more of them cost less.
fn is_nearly_level(Depths { hot, depth }: Depths) -> f64 {
    let asleep = 1.0 + 2.0 / depth as f64;
    45_000.0 / asleep / (1.0 + 0.08 * (hot as f64).ln())
}

#[test]
fn it_finds_what_is_nearly_the_best_within_five_seconds() {
    let loads: [(&str, usize, Load); 6] = [
        ("computes", 10, computes),
        ("computes in two", 2, computes),
        ("computes in many", 64, computes),
        ("commits", 64, commits),
        ("commits in ten", 10, commits),
        ("is far", 10, is_far),
    ];
    for (name, servers, load) in loads {
        let mut model = Model::new(servers);
        let part = model.reaches_then(Duration::from_secs(60), load);
        assert!(part > 0.93, "{name}: {part:.2}, {:?}", model.climb);
    }
}

#[test]
fn it_goes_along_with_another_load() {
    let mut model = Model::new(64);
    for load in [computes, commits, computes, is_far, commits] as [Load; 5] {
        let part = model.reaches_then(Duration::from_secs(20), load);
        assert!(part > 0.9, "{part:.2}, {:?}", model.climb);
    }
}

/// Whatever is being tried when it comes, or has been just before; with a pause between or not.
#[test]
fn another_load_is_found_at_any_moment() {
    for (from, to) in [(is_far as Load, commits as Load), (computes, commits), (commits, computes)]
    {
        for ticks in 0..400 {
            let mut model = Model::new(64);
            model.run(TICK * (ticks / 2), from);
            model.run(TICK * (ticks % 2) * 15, |_| 0.001);
            let part = model.reaches_then(Duration::from_secs(5), to);
            assert!(part > 0.9, "after {ticks}: {part:.2}, {:?}", model.climb);
        }
    }
}

/// A moment now and then in which a disk or a machine does little is no other load.
#[test]
fn moments_that_are_lost_do_not_keep_it_from_rest() {
    let mut model = Model::new(10);
    let mut rested = 0;
    for _ in 0..100 {
        model.run(TICK * 3, computes);
        model.run(TICK, |depths| computes(depths) / 3.0);
        rested += u32::from(model.climb.rests_until.is_some());
    }
    assert!(rested > 40, "{rested} of 100");
}

/// Where it began is more than there are.
#[test]
fn fewer_servers_are_found_in_a_small_pool() {
    let mut model = Model::beginning_with(WRITES, 10);
    model.run(Duration::from_secs(8), is_small);
    let (done, most) = model.run(Duration::from_secs(10), is_small);
    assert!(done > 0.85 * most, "{:.2}, {:?}", done / most, model.climb);
}

/// A busy machine gives now more, now less: that is no reason to leave what is best.
#[test]
fn chance_does_not_lead_away() {
    let (mut done, mut most) = (0.0, 0.0);
    for seed in 1..40 {
        let mut model = Model::new(10);
        model.spread = 0.12;
        model.noise = model.noise.wrapping_mul(seed);
        model.run(Duration::from_secs(5), computes);
        let (seen, at_best) = model.run(Duration::from_secs(60), computes);
        done += seen;
        most += at_best;
    }
    assert!(done > 0.93 * most, "{:.3}", done / most);
}

#[test]
fn a_load_that_begins_does_not_lead_away() {
    for (hundreds, seed) in (1..=20).flat_map(|hundreds| [1, 2, 3].map(|seed| (hundreds, seed))) {
        let mut model = Model::new(10);
        model.noise = model.noise.wrapping_mul(seed);
        model.warm = BEGINNING + hundreds * TICK;
        stays_at_one(&mut model, &format!("warm after {hundreds} ticks"));
    }
}

/// What is tried is compared with what was just before.
#[test]
fn a_bad_moment_at_the_beginning_does_not_lead_away() {
    for bad in 0..10 {
        let mut model = Model::new(10);
        model.run(bad * TICK, is_nearly_level);
        model.run(TICK, |depths| 0.6 * is_nearly_level(depths));
        stays_at_one(&mut model, &format!("bad after {bad} ticks"));
    }
}

/// Three servers do a twelfth less than one here, and a moment is often half of what it should be.
/// What was in vain is looked at ever more often before it is believed.
#[test]
fn a_machine_with_many_bad_moments_does_not_lead_away() {
    let mut at_one = 0;
    for seed in 1..=20 {
        let mut model = Model::new(10);
        model.noise = model.noise.wrapping_mul(seed);
        model.robbed = Some(6);
        for _ in 0..1_200 {
            model.run(TICK, is_nearly_level);
            at_one += usize::from(model.climb.best.hot == 1);
        }
    }
    assert!(at_one > 18_500, "{at_one} of 24000");
}

/// No more servers are believed in for five seconds.
fn stays_at_one(model: &mut Model, when: &str) {
    for _ in 0..50 {
        model.run(TICK, is_nearly_level);
        assert_eq!(model.climb.best.hot, 1, "{when}, {:?}", model.climb);
    }
}

/// The same, where a third fewer servers are hardly better than before: one is found at once.
#[test]
fn chance_does_not_hide_what_is_better() {
    let (mut done, mut most) = (0.0, 0.0);
    for seed in 1..40 {
        let mut model = Model::beginning_with(Depths { hot: 3, depth: 16 }, 10);
        model.spread = 0.12;
        model.noise = model.noise.wrapping_mul(seed);
        model.run(Duration::from_secs(5), is_small);
        let (seen, at_best) = model.run(Duration::from_secs(5), is_small);
        done += seen;
        most += at_best;
    }
    assert!(done > 0.93 * most, "{:.3}", done / most);
}

/// Clients that are gone for a while, and come back as they were, are no reason to try all anew.
#[test]
fn a_pause_is_no_rest() {
    let mut model = Model::new(10);
    let left = |model: &Model| {
        let until = model.climb.rests_until.filter(|until| *until > model.now);
        until.map(|until| until - model.now)
    };
    let before = loop {
        model.run(TICK, computes);
        if let Some(left) = left(&model) {
            break left;
        }
    };
    model.run(Duration::from_secs(60), |_| 0.001);
    let after = left(&model).expect("it rests");
    assert!(before.abs_diff(after) <= SLICE_AT_MOST + TICK, "{before:?}, {after:?}");
}

/// Nor is that they come one after the other.
#[test]
fn a_load_that_begins_anew_is_no_other_load() {
    let mut model = Model::new(10);
    while model.climb.rests_until.is_none() {
        model.run(TICK, computes);
    }
    for _ in 0..5 {
        model.run(Duration::from_secs(10), |_| 0.001);
        model.run(TICK, |depths| computes(depths) / 8.0);
        model.run(TICK, |depths| computes(depths) / 4.0);
        model.run(TICK, |depths| computes(depths) / 2.0);
        model.run(TICK * 3, computes);
        assert!(model.climb.rests_until.is_some(), "{:?}", model.climb);
    }
}

#[test]
fn where_nobody_meets_others_nothing_is_tried() {
    let mut climb = Climb::new(READS, COMPUTES);
    let mut last = 0;
    for tick in 1..100 {
        (0..100).for_each(|_| {
            climb.sent(1, false, 0, &mut last);
            climb.answered(Duration::from_millis(1));
        });
        climb.tick(Time(tick * 100_000), tick * 100, 10);
        assert_eq!(climb.depths(10), READS);
    }
    assert!(climb.ask_at_once());
    assert_eq!(climb.in_vain, 0, "what was not tried was not in vain");
}

/// What others of their pool do says nothing of how often they ask.
#[test]
fn clients_that_come_beside_busy_ones_have_some_servers() {
    let mut climb = Climb::new(READS, COMPUTES);
    let mut last = [0; 25];
    for tick in 1..50 {
        for unit in 0..50 {
            climb.sent(1, false, 0, &mut last[unit % 25]);
            climb.answered(Duration::from_millis(1));
        }
        climb.tick(Time(tick * 100_000), tick * 1_000, 10);
    }
    assert_eq!(climb.depths(10), Depths { hot: OF_OTHERS.hot, ..READS });
}

/// With sixteen clients one server is as good with 16 statements on it as with 64: to try that
/// says nothing, and leads down to where it is worse.
#[test]
fn a_depth_that_nothing_has_reached_is_not_left() {
    let mut climb = Climb::new(READS, COMPUTES);
    let (mut last, mut tried) = ([0; 16], 0);
    for tick in 1..600 {
        let depths = climb.depths(10);
        for unit in 0..4_000 {
            climb.sent(depths.hot, false, 16 / depths.hot - 1, &mut last[unit % 16]);
            climb.answered(Duration::from_micros(400));
        }
        climb.tick(Time(tick * 100_000), tick * 4_000, 10);
        assert_eq!(climb.depths(10).depth, READS.depth, "{climb:?}");
        tried += u32::from(climb.depths(10).hot > READS.hot);
    }
    assert!(tried > 0, "more servers are tried");
}

/// They pile up as soon as there is too little for them, and not before: no rate tells that.
#[test]
fn where_clients_come_when_they_come_nothing_is_tried() {
    let begin = Depths { hot: 6, depth: 32 };
    for (took_us, is_tried) in [(500, false), (5_000, true)] {
        let mut climb = Climb::new(begin, COMPUTES);
        let (mut last, mut differs) = ([0; 64], false);
        for tick in 1..300 {
            for unit in 0..1_280 {
                climb.sent(6, false, 1 - unit % 2, &mut last[unit % 64]);
                climb.answered(Duration::from_micros(took_us));
            }
            climb.tick(Time(tick * 100_000), tick * 1_280, 10);
            differs |= climb.depths(10) != begin;
        }
        assert_eq!(differs, is_tried, "{climb:?}");
    }
}

/// One server is awake as long as many ask at once, and not where few ask now and then.
#[test]
fn clients_that_come_when_they_come_have_some_servers() {
    let mut climb = Climb::new(READS, COMPUTES);
    let mut last = [0; 64];
    for tick in 1..100 {
        let took = if tick < 50 { 500 } else { 5_000 };
        for unit in 0..1_280 {
            climb.sent(1, false, 0, &mut last[unit % 64]);
            climb.answered(Duration::from_micros(took));
        }
        climb.tick(Time(tick * 100_000), tick * 1_280, 10);
        match tick {
            20 => assert_eq!(climb.depths(10), Depths { hot: OF_OTHERS.hot, ..READS }),
            70 => assert_eq!(climb.depths(10), READS),
            _ => {}
        }
    }
}

#[test]
fn a_small_pool_has_no_more_than_its_servers() {
    let many = Depths { hot: 3, depth: 16 };
    assert_eq!(Climb::new(many, COMPUTES).depths(2).hot, 2);
    for servers in 1..100 {
        for hot in 1..=servers {
            let at = Depths { hot, depth: 16 };
            let more = Move::MoreServers.from(at, servers).map_or(servers, |there| there.hot);
            let less = Move::FewerServers.from(at, servers).map_or(1, |there| there.hot);
            assert!(more <= servers && (more > hot || hot == servers), "{hot} of {servers}");
            assert!(less >= 1 && (less < hot || hot == 1), "{hot} of {servers}");
        }
    }
}
