import { DemoError } from '../server/demo-error.ts'
import { startCluster } from './start-cluster.ts'

try {
  console.log('Starting PostgreSQL and two instances…')
  const cluster = await startCluster(process.env, {
    onChange: (sentence) => console.log(sentence),
  })
  let isStopping = false
  const stop = (): void => {
    // The first signal waits for running calls. A second one exits immediately.
    if (isStopping) process.exit(1)
    isStopping = true
    void cluster.close().then(
      () => process.exit(0),
      (cause: unknown) => {
        console.error(cause)
        process.exit(1)
      },
    )
  }
  process.on('SIGINT', stop)
  process.on('SIGTERM', stop)
  console.log(cluster.summary.join('\n'))
} catch (cause) {
  console.error(cause instanceof DemoError ? cause.message : cause)
  process.exitCode = 1
}
