import { DemoError } from '../server/demo-error.ts'
import { endWithParent } from '../server/end-with-parent.ts'
import { startCluster } from './start-cluster.ts'

try {
  console.log('Starting PostgreSQL and two instances…')
  const cluster = await startCluster(process.env, {
    onChange: (sentence) => console.log(sentence),
  })
  // A repeated signal changes nothing here. The terminal sends it to the instances too, which then end at once.
  const close = (): void => void cluster.close().then(() => process.exit(0))
  process.on('SIGTERM', close)
  process.on('SIGINT', close)
  endWithParent()
  console.log(cluster.summary.join('\n'))
} catch (cause) {
  console.error(cause instanceof DemoError ? cause.message : cause)
  process.exitCode = 1
}
