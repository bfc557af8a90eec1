import { spawn } from 'node:child_process'

/** Keeps the machine busy. Returns a function that ends this. */
export function startBusyProcesses(count: number): () => void {
  const processes = Array.from({ length: count }, () =>
    spawn(process.execPath, ['-e', 'for (;;) {}'], { stdio: 'ignore' }),
  )
  return () => {
    for (const child of processes) child.kill('SIGKILL')
  }
}
