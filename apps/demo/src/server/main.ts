import { LogLevel, setLogLevel } from '@google/adk'

import { DemoError } from './demo-error.ts'
import { type Demo, startDemo } from './start-demo.ts'

// ADK tells of every request and of every experimental method; the terminal is for what needs attention.
setLogLevel(LogLevel.ERROR)

try {
  const demo = await startDemo(process.env, { onError: (error) => console.error(error) })
  let isStopping = false
  const stop = () => {
    // The first signal lets running calls end, a second one ends at once.
    if (isStopping) process.exit(1)
    isStopping = true
    void shutDown(demo)
  }
  process.on('SIGINT', stop)
  process.on('SIGTERM', stop)
  console.log(demo.summary.join('\n'))
} catch (cause) {
  console.error(cause instanceof DemoError ? cause.message : cause)
  process.exitCode = 1
}

async function shutDown(demo: Demo): Promise<void> {
  try {
    await demo.close()
  } catch (cause) {
    console.error(cause)
  }
  process.exit(0)
}
