import { LogLevel, setLogLevel } from '@google/adk'

import { DemoError } from './demo-error.ts'
import { type Demo, startDemo } from './start-demo.ts'

// ADK logs every request and every experimental method. The terminal shows errors only.
setLogLevel(LogLevel.ERROR)

try {
  const demo = await startDemo(process.env, { onError: (error) => console.error(error) })
  let isStopping = false
  const stop = () => {
    // The first signal waits for running calls. A second one exits immediately.
    if (isStopping) process.exit(1)
    isStopping = true
    void shutDown(demo)
  }
  process.on('SIGINT', stop)
  process.on('SIGTERM', stop)
  console.log(demo.summary.join('\n'))
  // The parent process of a cluster.
  process.send?.({ url: demo.url })
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
