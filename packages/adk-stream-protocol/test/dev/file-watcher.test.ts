import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'

import { expect, test } from 'vitest'

import { temporaryDirectory } from '../../../../test/support/temporary-directory.ts'
import { createFileWatcher } from '../../src/dev/page/file-watcher.ts'

test('[DV1322] a file is watched also after its folder was deleted and created again', async () => {
  await using directory = await temporaryDirectory()
  const folder = directory.file('generated/inner')
  const file = path.join(folder, 'names.mjs')
  const write = (text: string): void => {
    mkdirSync(folder, { recursive: true })
    writeFileSync(file, text)
  }
  const changes: string[] = []
  const watcher = createFileWatcher((files) => changes.push(...files))
  const untilChange = async (count: number): Promise<void> => {
    await expect.poll(() => changes).toEqual(Array.from({ length: count }, () => file))
  }
  try {
    write('1')
    watcher.watch([file])
    write('2')
    await untilChange(1)
    rmSync(path.dirname(folder), { recursive: true })
    await untilChange(2)
    write('3')
    await untilChange(3)
    write('4')
    await untilChange(4)
  } finally {
    watcher.close()
  }
})
