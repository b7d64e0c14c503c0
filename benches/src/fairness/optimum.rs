//! The max-min fair optimum, by progressive filling: all flows grow together
//! until a limit is full; the flows through it stop, the others go on.

/// What the filling works on: each flow's limits and cost, each limit's
/// capacity in tokens per second.
pub struct Problem<'a> {
    /// Tokens per second of each limit.
    pub capacity: &'a [f64],
    /// The limits of each flow.
    pub flows: &'a [Vec<usize>],
}

/// The fair token rate of each flow, and how much of each limit it fills.
pub fn max_min(problem: &Problem<'_>) -> (Vec<f64>, Vec<f64>) {
    let mut left: Vec<f64> = problem.capacity.to_vec();
    let mut users: Vec<Vec<usize>> = vec![Vec::new(); left.len()];
    for (flow, limits) in problem.flows.iter().enumerate() {
        for &limit in limits {
            users[limit].push(flow);
        }
    }
    let mut active: Vec<usize> = users.iter().map(Vec::len).collect();
    let mut rate: Vec<Option<f64>> = vec![None; problem.flows.len()];
    let mut level = 0.0;
    loop {
        let next = (0..left.len())
            .filter(|&limit| active[limit] > 0)
            .map(|limit| (left[limit] / active[limit] as f64, limit))
            .min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let Some((step, full)) = next else { break };
        level += step;
        for limit in 0..left.len() {
            left[limit] -= step * active[limit] as f64;
        }
        for &flow in &users[full] {
            if rate[flow].is_none() {
                rate[flow] = Some(level);
                for &limit in &problem.flows[flow] {
                    active[limit] -= 1;
                }
            }
        }
        left[full] = 0.0;
    }
    let rates: Vec<f64> = rate.into_iter().map(|rate| rate.unwrap_or(0.0)).collect();
    let mut used = vec![0.0; left.len()];
    for (flow, limits) in problem.flows.iter().enumerate() {
        for &limit in limits {
            used[limit] += rates[flow];
        }
    }
    (rates, used)
}
