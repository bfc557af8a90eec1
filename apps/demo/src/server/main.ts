import { LogLevel, setLogLevel } from '@google/adk'

import { DemoError } from './demo-error.ts'
import { type Demo, startDemo } from './start-demo.ts'

// Whatever still hangs then is not worth waiting for.
const SHUTDOWN_MS = 4500

// ADK tells of every request and of every experimental method; the terminal is for what needs attention.
setLogLevel(LogLevel.ERROR)

try {
  const demo = await startDemo(process.env, { onError: (error) => console.error(error) })
  console.log(demo.summary.join('\n'))
  const stop = () => void shutDown(demo)
  process.once('SIGINT', stop)
  process.once('SIGTERM', stop)
} catch (cause) {
  console.error(cause instanceof DemoError ? cause.message : cause)
  process.exitCode = 1
}

async function shutDown(demo: Demo): Promise<void> {
  setTimeout(() => process.exit(0), SHUTDOWN_MS).unref()
  try {
    await demo.close()
  } catch (cause) {
    console.error(cause)
  }
  process.exit(0)
}
