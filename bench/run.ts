import { cpus, loadavg } from 'node:os'

import { measureDurableWrite } from './disk.ts'
import { measureEndurance } from './endurance.ts'
import type { Pass } from './passes.ts'
import { measurePass, openRow } from './passes.ts'
import { reportGoals, reportRows } from './report.ts'
import { pinLoad, ServerProcess } from './server-process.ts'
import { FULL, QUICK } from './sizes.ts'
import { median } from './statistics.ts'

const sizes = process.argv.includes('--quick') ? QUICK : FULL
const startedAt = performance.now()
const loadBefore = loadavg()[0] ?? 0

const pinned = pinLoad()
const servers = await Promise.all([
  ServerProcess.start('R'),
  ServerProcess.start('F'),
  ServerProcess.start('us'),
  ServerProcess.start('A'),
] as const)
const [raw, floor, us, peer] = servers
const rows = await Promise.all([
  openRow('R', raw, sizes),
  openRow('F', floor, sizes),
  openRow('us', us, sizes),
  openRow('A', peer, sizes),
])
const [, , bridge] = rows

// The first pass warms the servers up and counts for nothing.
const passes: Pass[] = []
const durableWrites: number[] = []
for (let turn = 0; turn <= sizes.passes; turn += 1) {
  console.error(turn === 0 ? 'warming up' : `pass ${turn} of ${sizes.passes}`)
  durableWrites.push(measureDurableWrite())
  const pass = await measurePass(rows, sizes, turn)
  if (turn > 0) passes.push(pass)
}
console.error('endurance')
const endurance = await measureEndurance(bridge, sizes)

for (const { clients } of rows) for (const client of clients) client.close()
await Promise.all(servers.map((server) => server.stop()))

const seconds = Math.round((performance.now() - startedAt) / 1_000)
const load = loadBefore.toFixed(1)
console.log(`
${new Date().toISOString().slice(0, 10)}, Node ${process.version}, ${cpus().length} cores${pinned ? ', servers and load on different ones' : ''}, \
load average before the run ${load}, a durable write ${median(durableWrites).toFixed(2)} ms, ${passes.length} passes in ${seconds} s
${loadBefore > 0.3 ? '\nThe machine is busy with other work: trust the ratios, and only those with a narrow range.\n' : ''}
${reportRows(passes, sizes)}

${reportGoals(passes, endurance, sizes)}
`)
