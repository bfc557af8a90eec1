import { afterAll, afterEach, vi } from 'vitest'

/** The global names that tests replace. */
const GLOBALS = [
  'Date',
  'WebSocket',
  'clearInterval',
  'clearTimeout',
  'console',
  'fetch',
  'performance',
  'queueMicrotask',
  'setImmediate',
  'setInterval',
  'setTimeout',
] as const

/** Events of the process whose listeners hide errors. Those of signals are not here: a browser that later files use adds some. */
const EVENTS = ['uncaughtException', 'unhandledRejection'] as const

/** Variables for the whole process: the first bridge sets one, the database library of ADK the other one. */
const SET_BY_LIBRARIES = ['ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS', 'MIKRO_ORM_COLORS']

const globals: Record<string, unknown> = globalThis

const before = snapshot()

// A test that fails before it does so itself would make later tests fail.
afterEach(() => {
  vi.unstubAllGlobals()
  vi.unstubAllEnvs()
})

/**
 * Fails the file that leaves a changed global, environment variable or process listener to the next file of its worker. The hook
 * runs after those of the file.
 */
afterAll(() => {
  // Vitest does this after the file. A spy on a fake timer, restored after the timers, puts the fake timer back.
  vi.restoreAllMocks()
  const after = snapshot()
  const changed = new Set([...before.keys(), ...after.keys()])
  for (const name of changed) if (before.get(name) === after.get(name)) changed.delete(name)
  // Only this file is to fail.
  vi.useRealTimers()
  for (const name of GLOBALS) if (changed.has(name)) globals[name] = before.get(name)
  if (changed.size > 0)
    throw new Error(`This file leaves to the next file of its worker: ${[...changed].join(', ')}`)
})

function snapshot(): ReadonlyMap<string, unknown> {
  return new Map<string, unknown>([
    ['fake timers', vi.isFakeTimers()],
    ...GLOBALS.map((name) => [name, globals[name]] as const),
    ...Object.entries(process.env)
      .filter(([name]) => !SET_BY_LIBRARIES.includes(name))
      .map(([name, value]) => [`process.env.${name}`, value] as const),
    ...EVENTS.map((name) => [`listeners of '${name}'`, process.listenerCount(name)] as const),
  ])
}
