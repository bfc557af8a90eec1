import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import path from 'node:path'

import ceilings from './ceilings.json' with { type: 'json' }
import { FEATURES } from './features.ts'
import { compareWeave, findLongestChain, isWithin, measureWeave } from './measure.ts'
import { readSourceFiles } from './source-files.ts'

/**
 * Prints how many files use each feature without belonging to it, the folders that import each other in a cycle, and the longest chains
 * of imports. With `--files`, also prints the files. With `--write`, lowers the ceilings to what was measured.
 */
const files = readSourceFiles()
const measured = measureWeave(files, FEATURES)
const withFiles = process.argv.includes('--files')

console.log('Files of the server that use a feature without belonging to it:')
for (const [name, users] of Object.entries(measured.features)) {
  const layers = users.map((file) => file.split('/')[0] ?? '')
  const counts = [...new Set(layers)].map(
    (layer) => `${layer} ${layers.filter((each) => each === layer).length}`,
  )
  console.log(`  ${name.padEnd(16)}${String(users.length).padStart(3)}   ${counts.join(', ')}`)
  if (withFiles) for (const file of users) console.log(`      ${file}`)
}

console.log('\nFolders that import each other in a cycle:')
for (const knot of measured.knots) console.log(`  ${knot.length}: ${knot.join(', ')}`)

console.log('\nFiles in the longest chain of imports in the server:')
console.log(
  `  ${measured.chains.runtime} at run time, ${measured.chains.withTypes} with imports of types`,
)
if (withFiles)
  for (const file of findLongestChain(files, 'runtimeImports')) console.log(`      ${file}`)

const differences = compareWeave(measured, ceilings)
if (differences.length > 0) console.log(`\n${differences.join('\n')}`)
if (process.argv.includes('--write')) write()
else if (differences.length > 0) process.exitCode = 1

function write(): void {
  if (!isWithin(measured, ceilings)) {
    console.log('\nCeilings only go down: nothing was written.')
    process.exitCode = 1
    return
  }
  const file = path.join(import.meta.dirname, 'ceilings.json')
  writeFileSync(file, JSON.stringify(measured, undefined, 2))
  spawnSync('oxfmt', [JSON.stringify(file)], { shell: true })
}
