import { readFile } from 'node:fs/promises'

import { parse } from 'yaml'

import { EmulatorError } from '../../emulator-error.ts'
import { parseScenario } from './scenario-mind.ts'
import type { Scenario } from './scenario.ts'

/** Reads a scenario from a YAML or JSON file. */
export async function loadScenario(path: string): Promise<Scenario> {
  const source = await readSource(path)
  const value = parseSource(source, path)
  parseScenario(value, path)
  // parseScenario has just checked the shape; the mind parses its own copy.
  return value as Scenario
}

async function readSource(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new EmulatorError('unreadable-scenario', `Cannot open the scenario ${path}: ${reason}`, {
      cause,
    })
  }
}

function parseSource(source: string, path: string): unknown {
  try {
    // JSON is YAML.
    return parse(source)
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new EmulatorError('unreadable-scenario', `${path} is neither YAML nor JSON: ${reason}`, {
      cause,
    })
  }
}
