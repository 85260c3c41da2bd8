// SPDX-License-Identifier: Apache-2.0
//! A sampler sends blocks of values to a collector, which reads them where they lie.

use std::error::Error;
use std::process::Command;
use std::time::Duration;

use velo::{id, Message, Port, PortOptions};

const COLLECTOR: u8 = 0;
const SAMPLER: u8 = 1;
const VALUES: u32 = 100_000;
const BLOCK: u32 = 500;
const PATIENCE: Option<Duration> = Some(Duration::from_secs(5));

/// A sensor would be read here.
fn measure(i: u32) -> f64 {
    f64::from(i % 1000)
}

fn sample(domain: &str) -> Result<(), Box<dyn Error>> {
    let port = Port::open(&PortOptions::new().domain(domain).vpid(SAMPLER))?;
    let connection = port.connect(id(0, COLLECTOR), PATIENCE)?;
    for i in (0..VALUES).step_by(BLOCK as usize) {
        let block: Vec<u8> = (i..i + BLOCK).flat_map(|i| measure(i).to_le_bytes()).collect();
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
    let mut sum = 0.0;
    for _ in 0..VALUES / BLOCK {
        let block = port.peek(PATIENCE)?; // Its end gives the memory back.
        sum += sum_of(&block);
    }
    let mean = sum / f64::from(VALUES);
    println!("{VALUES} values, their mean is {mean:.1}");
    assert_eq!(mean, 499.5);
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    if let Some(domain) = std::env::args().nth(1) {
        return sample(&domain);
    }
    let domain = format!("tutorial-{}", std::process::id()); // One of our own.
    let port = Port::open(&PortOptions::new().domain(&domain).vpid(COLLECTOR))?;
    let mut child = Command::new(std::env::current_exe()?).arg(&domain).spawn()?;
    collect(&port)?;
    assert!(child.wait()?.success());
    Ok(())
}
