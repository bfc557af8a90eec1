#!/usr/bin/env node
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'

import { EmulatorError } from './emulator-error.ts'
import { startEmulator, type EmulatorOptions } from './emulator.ts'
import { fallbackResponder, firstOf } from './responders/responder.ts'
import { loadScenario, scenarioResponder } from './responders/scenario.ts'
import { scriptResponder } from './responders/script-responder.ts'

const HELP = `gemini-emulator: a local server for Gemini's REST and Live APIs.

  --port <number>      port to listen on (default 8790; 0 for a free port)
  --host <address>     address to listen on (default 127.0.0.1)
  --scenario <file>    YAML or JSON file with the model's replies
  --pace <ms>          milliseconds between two streamed pieces (default 30)
  --api-key <key>      accept only this key (default: any)
  --quiet              print errors only
  --version, --help

Exit codes: 0 stopped by a signal, 1 cannot start, 2 wrong usage.
`

/** An error in the command line. */
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
  print(describeStart(emulator.baseUrl))
  const stop = () => {
    process.off('SIGINT', stop)
    process.off('SIGTERM', stop)
    // The process exits when the server has closed. A second signal stops it immediately.
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
  const scenarios = flags.scenario === undefined ? [] : [await loadScenario(flags.scenario)]
  return {
    port: readNumber('--port', flags.port, 65_535),
    host: flags.host,
    paceMs: readNumber('--pace', flags.pace, 60_000),
    respond: firstOf(scriptResponder, ...scenarios.map(scenarioResponder), fallbackResponder),
    ...(flags['api-key'] !== undefined && { apiKey: flags['api-key'] }),
  }
}

function readNumber(flag: string, value: string, max: number): number {
  const number = /^\d+$/.test(value) ? Number(value) : Number.NaN
  if (number <= max) return number
  throw new UsageError(`${flag} must be a number from 0 to ${max}, not ${JSON.stringify(value)}.`)
}

function readVersion(): string {
  const json: unknown = JSON.parse(
    readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
  )
  return typeof json === 'object' && json !== null && 'version' in json ? String(json.version) : ''
}

function describeStart(baseUrl: string): string {
  return `Gemini emulator on ${baseUrl}

  export GOOGLE_GEMINI_BASE_URL=${baseUrl} GOOGLE_API_KEY=any

directs @google/genai and @google/adk to it. Press Ctrl-C to stop.
`
}
