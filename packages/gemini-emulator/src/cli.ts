#!/usr/bin/env node
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'

import { EmulatorError } from './emulator-error.ts'
import { startEmulator, type EmulatorOptions } from './emulator.ts'
import { fallbackMind } from './minds/fallback-mind.ts'
import { firstOf } from './minds/first-of.ts'
import { loadScenario } from './minds/scenario/load-scenario.ts'
import { scenarioMind } from './minds/scenario/scenario-mind.ts'
import { scriptMind } from './minds/script/script-mind.ts'

const HELP = `gemini-emulator: Gemini's REST and Live wire on this machine.

  --port <number>      port to listen on (default 8790; 0 for any free one)
  --host <address>     address to listen on (default 127.0.0.1)
  --scenario <file>    YAML or JSON file that says what the model does
  --pace <ms>          milliseconds between two streamed pieces (default 30)
  --api-key <key>      accept this key only (default: any)
  --quiet              print nothing but errors
  --version, --help

Exit codes: 0 stopped by a signal, 1 cannot start, 2 wrong usage.
`

/** A mistake in how the command was called. */
class UsageError extends Error {
  override readonly name = 'UsageError'
}

try {
  await run(process.argv.slice(2))
} catch (error) {
  if (error instanceof UsageError) {
    console.error(`gemini-emulator: ${error.message}\nTry gemini-emulator --help.`)
    process.exitCode = 2
  } else if (error instanceof EmulatorError) {
    console.error(`gemini-emulator: ${error.message}`)
    process.exitCode = 1
  } else {
    throw error
  }
}

async function run(args: readonly string[]): Promise<void> {
  const flags = readFlags(args)
  if (flags.help) return console.log(HELP)
  if (flags.version) return console.log(readVersion())
  const print = flags.quiet ? () => undefined : (line: string) => console.log(line)
  const emulator = await startEmulator({ ...(await toOptions(flags)), log: print })
  print(welcome(emulator.baseUrl))
  const stop = () => {
    process.off('SIGINT', stop)
    process.off('SIGTERM', stop)
    // Nothing is left to do when it has closed, so the process ends by itself; a second signal ends it at once.
    void emulator.close()
  }
  process.on('SIGINT', stop)
  process.on('SIGTERM', stop)
}

function readFlags(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        port: { type: 'string', default: '8790' },
        host: { type: 'string', default: '127.0.0.1' },
        scenario: { type: 'string' },
        pace: { type: 'string', default: '30' },
        'api-key': { type: 'string' },
        quiet: { type: 'boolean', default: false },
        version: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
      },
    }).values
  } catch (cause) {
    throw new UsageError(cause instanceof Error ? cause.message : String(cause), { cause })
  }
}

async function toOptions(flags: ReturnType<typeof readFlags>): Promise<EmulatorOptions> {
  const told = flags.scenario === undefined ? [] : [await loadScenario(flags.scenario)]
  return {
    port: readNumber('--port', flags.port, 65_535),
    host: flags.host,
    paceMs: readNumber('--pace', flags.pace, 60_000),
    mind: firstOf(scriptMind, ...told.map(scenarioMind), fallbackMind),
    ...(flags['api-key'] !== undefined && { apiKey: flags['api-key'] }),
  }
}

function readNumber(flag: string, value: string, max: number): number {
  const number = /^\d+$/.test(value) ? Number(value) : Number.NaN
  if (number <= max) return number
  throw new UsageError(`${flag} takes a number from 0 to ${max}, not ${JSON.stringify(value)}.`)
}

function readVersion(): string {
  const json: unknown = JSON.parse(
    readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
  )
  return typeof json === 'object' && json !== null && 'version' in json ? String(json.version) : ''
}

function welcome(baseUrl: string): string {
  return `Gemini emulator on ${baseUrl}

  export GOOGLE_GEMINI_BASE_URL=${baseUrl} GOOGLE_API_KEY=any

points @google/genai and @google/adk at it. Ctrl-C stops it.
`
}
