import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'

import type { Emulator } from 'gemini-emulator'
import { firstOf, loadScenario, scenarioResponder, startEmulator } from 'gemini-emulator'

import type { ProjectFile } from '../../../packages/create-adk-stream-protocol/src/templates.ts'

/** Starts the emulator with the scenario `model.yaml` of a project. Other prompts get a short reply. */
export async function emulateProject(files: readonly ProjectFile[]): Promise<Emulator> {
  const scenario = files.find(({ file }) => file === 'model.yaml')
  if (!scenario) throw new Error('The project has no model.yaml.')
  const folder = mkdtempSync(path.join(tmpdir(), 'scenario-'))
  const file = path.join(folder, 'model.yaml')
  writeFileSync(file, scenario.text)
  const respond = scenarioResponder(await loadScenario(file))
  rmSync(folder, { recursive: true })
  return startEmulator({ respond: firstOf(respond, () => [{ type: 'say', text: 'Hello.' }]) })
}
