import { DemoError } from '../server/demo-error.ts'
import { stopOnSignals } from '../server/stop-on-signals.ts'
import { startCluster } from './start-cluster.ts'

try {
  console.log('Starting PostgreSQL and two instances…')
  const cluster = await startCluster(process.env, {
    onChange: (sentence) => console.log(sentence),
  })
  stopOnSignals(() => cluster.close())
  console.log(cluster.summary.join('\n'))
} catch (cause) {
  console.error(cause instanceof DemoError ? cause.message : cause)
  process.exitCode = 1
}
