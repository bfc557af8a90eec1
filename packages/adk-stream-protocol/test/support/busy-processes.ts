import { spawn } from 'node:child_process'

/** Keeps a core busy as long as its parent runs. */
const BUSY = 'const { ppid } = process; while (process.ppid === ppid);'

/** Keeps the machine busy. Returns a function that ends this. */
export function startBusyProcesses(count: number): () => void {
  const processes = Array.from({ length: count }, () =>
    spawn(process.execPath, ['-e', BUSY], { stdio: 'ignore' }),
  )
  return () => {
    for (const child of processes) child.kill('SIGKILL')
  }
}
