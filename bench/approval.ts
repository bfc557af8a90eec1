import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { measureDecisions } from './decisions/measure.ts'

const folder = await mkdtemp(join(tmpdir(), 'approval-bench-'))
const { floor, bridge, notify = bridge, received = 0 } = await measureDecisions('http', { folder })
console.log(`From the request that approves to the start of the tool, medians:

| | wall time | CPU of the server |
| --- | --- | --- |
| bare POST and two durable commits | ${floor.ms.toFixed(2)} ms | ${floor.cpuUs} µs |
| the bridge | ${bridge.ms.toFixed(2)} ms | ${bridge.cpuUs} µs |
| the bridge, and a webhook is told of each approval (${received} notices) | ${notify.ms.toFixed(2)} ms | ${notify.cpuUs} µs |
| the bridge with the webhook against without (goal ≤ 1.03 ×) | ${(notify.ms / bridge.ms).toFixed(2)} × | ${(notify.cpuUs / bridge.cpuUs).toFixed(2)} × |
| ratio (goal ≤ 1.5 ×) | ${(bridge.ms / floor.ms).toFixed(2)} × | ${(bridge.cpuUs / floor.cpuUs).toFixed(2)} × |`)
await rm(folder, { recursive: true, force: true })
process.exit(0)
