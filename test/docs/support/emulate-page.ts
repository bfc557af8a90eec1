import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'

import type { Emulator } from 'gemini-emulator'
import { firstOf, loadScenario, scenarioResponder, startEmulator } from 'gemini-emulator'

import type { Block } from './pages.ts'

/** Starts the emulator with the scenario `model.yaml` that a page shows. Other prompts get a short reply. */
export async function emulatePage(blocks: readonly Block[]): Promise<Emulator> {
  const scenario = blocks.find(({ file }) => file === 'model.yaml')
  if (!scenario) throw new Error('The page shows no model.yaml.')
  const folder = mkdtempSync(path.join(tmpdir(), 'scenario-'))
  const file = path.join(folder, 'model.yaml')
  writeFileSync(file, scenario.text)
  const respond = scenarioResponder(await loadScenario(file))
  rmSync(folder, { recursive: true })
  return startEmulator({ respond: firstOf(respond, () => [{ type: 'say', text: 'Hello.' }]) })
}
