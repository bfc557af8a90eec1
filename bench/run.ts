import { cpus, loadavg } from 'node:os'

import { measureDurableWrite } from './disk.ts'
import { measureEndurance } from './endurance.ts'
import type { Pass } from './passes.ts'
import { closeRow, measurePass, openRow } from './passes.ts'
import { reportGoals, reportRows, ROWS } from './report.ts'
import { pinLoad } from './server-process.ts'
import { FULL, QUICK, warmUp } from './sizes.ts'
import { median } from './statistics.ts'

const sizes = process.argv.includes('--quick') ? QUICK : FULL
const startedAt = performance.now()
const loadBefore = loadavg()[0] ?? 0
const pinned = pinLoad()

const passes: Pass[] = []
const durableWrites: number[] = []
for (let turn = 0; turn < sizes.passes; turn += 1) {
  console.error(`pass ${turn + 1} of ${sizes.passes}`)
  // Two processes with the same code may differ by a third during their whole life, so every pass starts new ones.
  const rows = await Promise.all(ROWS.map(([row]) => openRow(row)))
  await measurePass(rows, warmUp(sizes), turn)
  passes.push(await measurePass(rows, sizes, turn))
  durableWrites.push(measureDurableWrite())
  await Promise.all(rows.map(closeRow))
}

console.error('endurance')
const bridge = await openRow('us')
const endurance = await measureEndurance(bridge, sizes)
await closeRow(bridge)

const facts = [
  new Date().toISOString().slice(0, 10),
  `Node ${process.version}`,
  `${cpus().length} cores${pinned ? ', servers and load on different ones' : ''}`,
  `load average before the run ${loadBefore.toFixed(1)}`,
  `a durable write ${median(durableWrites).toFixed(2)} ms`,
  `${passes.length} passes in ${Math.round((performance.now() - startedAt) / 1_000)} s`,
]
console.log(`
${facts.join(', ')}
${loadBefore > 0.3 ? '\nThe machine is busy with other work: trust the ratios, and only those with a narrow range.\n' : ''}
${reportRows(passes, sizes)}

${reportGoals(passes, endurance, sizes)}
`)
