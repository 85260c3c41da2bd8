// SPDX-License-Identifier: Apache-2.0
//! Several samplers send to one collector, which sees whose block it is, and who has gone.

use std::collections::HashMap;
use std::error::Error;
use std::process::Command;
use std::time::Duration;

use velo::{id, Message, Port, PortOptions, Status};

const COLLECTOR: u8 = 0;
const SAMPLERS: u8 = 4;
const VALUES: u32 = 100_000;
const BLOCK: u32 = 500;
const PATIENCE: Option<Duration> = Some(Duration::from_secs(5));

/// A sensor would be read here.
fn measure(this: u8, i: u32) -> f64 {
    f64::from(u32::from(this) * 1000 + i % 1000)
}

fn sample(domain: &str, this: u8) -> Result<(), Box<dyn Error>> {
    let port = Port::open(&PortOptions::new().domain(domain).vpid(this))?;
    let connection = port.connect(id(0, COLLECTOR), PATIENCE)?;
    for i in (0..VALUES).step_by(BLOCK as usize) {
        let block: Vec<u8> = (i..i + BLOCK).flat_map(|i| measure(this, i).to_le_bytes()).collect();
        connection.send(&block, 0, PATIENCE)?;
    }
    Ok(())
}

fn sum_of(block: &Message) -> f64 {
    // SAFETY: The sender is this program, and leaves what it has sent alone.
    let values = unsafe { block.bytes() }.chunks_exact(8);
    values.map(|value| f64::from_le_bytes(value.try_into().unwrap())).sum()
}

fn collect(port: &Port) -> Result<(), Box<dyn Error>> {
    let mut sums = HashMap::new();
    let mut gone = 0;
    while gone < SAMPLERS {
        match port.peek(PATIENCE) {
            Ok(block) => *sums.entry(block.info().source).or_insert(0.0) += sum_of(&block),
            Err(not) if [Status::PEER_CLOSED, Status::PEER_DEAD].contains(&not.status) => {
                let sampler = not.about.source; // On node 0 a port's id is its vpid.
                let mean = sums[&sampler] / f64::from(VALUES);
                println!("sampler {sampler} has gone, its mean is {mean:.1}");
                assert_eq!(mean, f64::from(sampler * 1000) + 499.5);
                gone += 1;
            }
            Err(not) => return Err(not.into()),
        }
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    if let (Some(domain), Some(this)) = (std::env::args().nth(1), std::env::args().nth(2)) {
        return sample(&domain, this.parse()?);
    }
    let domain = format!("tutorial-{}", std::process::id()); // One of our own.
    let port = Port::open(&PortOptions::new().domain(&domain).vpid(COLLECTOR).departures())?;
    let start = |this: u8| {
        let program = std::env::current_exe()?;
        Command::new(program).args([&domain, &this.to_string()]).spawn()
    };
    let samplers = (1..=SAMPLERS).map(start).collect::<Result<Vec<_>, _>>()?;
    collect(&port)?;
    for mut sampler in samplers {
        assert!(sampler.wait()?.success());
    }
    Ok(())
}
