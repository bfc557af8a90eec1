import { LogLevel, setLogLevel } from '@google/adk'

import { DemoError } from './demo-error.ts'
import { endWithParent } from './end-with-parent.ts'
import { startDemo } from './start-demo.ts'

// ADK logs every request and every experimental method. The terminal shows errors only.
setLogLevel(LogLevel.ERROR)

try {
  const demo = await startDemo(process.env, { onError: (error) => console.error(error) })
  demo.closeOnSignals()
  endWithParent()
  console.log(demo.summary.join('\n'))
  // The parent process of a cluster.
  process.send?.({ url: demo.url })
} catch (cause) {
  console.error(cause instanceof DemoError ? cause.message : cause)
  process.exitCode = 1
}
