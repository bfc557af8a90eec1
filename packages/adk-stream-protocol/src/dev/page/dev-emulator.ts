import { findPackage, findStudio } from '../load/find-package.ts'
import { LoadError } from '../load/load-error.ts'

/** The part of `gemini-emulator` that `dev` uses. This package does not depend on it. */
interface EmulatorPackage {
  readonly startEmulator: (options: {
    readonly respond: unknown
    readonly paceMs: number
    readonly models: readonly RegExp[]
    readonly keepRequests: number
    readonly live: { readonly playback: 'real-time' }
  }) => Promise<{ readonly baseUrl: string; readonly close: () => Promise<void> }>
  readonly firstOf: (...responders: readonly unknown[]) => unknown
  readonly scriptResponder: unknown
  readonly toolResponder: unknown
  readonly loadScenario: (path: string) => Promise<unknown>
  readonly scenarioResponder: (scenario: unknown) => unknown
}

/** An emulator in place of the model, for all versions of the agents. */
export interface DevEmulator {
  /** Returns its URL. Starts it at the first call, and again when the scenario has changed. Throws a `LoadError`. */
  readonly start: () => Promise<string>
  /** The scenario has changed. */
  readonly change: () => void
  readonly close: () => Promise<void>
}

export function createDevEmulator(
  agentFile: string,
  scenarioFile: string | undefined,
): DevEmulator {
  let starting: ReturnType<EmulatorPackage['startEmulator']> | undefined
  const older: NonNullable<typeof starting>[] = []
  return {
    async start() {
      starting ??= startEmulator(agentFile, scenarioFile)
      try {
        return (await starting).baseUrl
      } catch (error) {
        starting = undefined
        throw error
      }
    },
    change() {
      // Replies that are running come from the one before.
      if (starting) older.push(starting)
      starting = undefined
    },
    async close() {
      for (const each of [...older, ...(starting ? [starting] : [])]) await (await each).close()
    },
  }
}

async function startEmulator(agentFile: string, scenarioFile: string | undefined) {
  const url =
    findPackage(EMULATOR, agentFile) ?? findPackage(EMULATOR, new URL(findStudio(agentFile)))
  if (url === undefined)
    throw new LoadError(
      'missing-module',
      `Without a key, ${EMULATOR} replies in place of the model, and it is not installed. Install it: npm install -D ${EMULATOR}`,
    )
  // An interface of its own tests.
  const emulator = (await import(url)) as EmulatorPackage
  const { firstOf, scriptResponder, toolResponder } = emulator
  const scenarios =
    scenarioFile === undefined
      ? []
      : [emulator.scenarioResponder(await emulator.loadScenario(scenarioFile))]
  return emulator.startEmulator({
    respond: firstOf(scriptResponder, ...scenarios, toolResponder),
    paceMs: 15,
    models: [/./],
    // Nothing reads them.
    keepRequests: 1,
    // People can interrupt the model while its speech plays.
    live: { playback: 'real-time' },
  })
}

const EMULATOR = 'gemini-emulator'
