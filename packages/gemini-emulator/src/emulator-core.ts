import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'

import { defer } from './deferred.ts'
import { EmulatorError } from './emulator-error.ts'
import type { Action, Prompt, Responder } from './responders/responder.ts'
import type { Content } from './wire/content.ts'

/** Converts an utterance to text. `history` is the conversation before it. */
export type Transcribe = (speech: Speech, history: readonly Content[]) => string | Promise<string>

/** Audio of one utterance: signed 16-bit little-endian mono samples. */
export interface Speech {
  readonly pcm: Uint8Array
  readonly sampleRate: number
}

/**
 * Converts the pieces of one text to speech: signed 16-bit mono samples at 24 kHz, one array for each piece. Returns an
 * empty array for a piece without sound.
 */
export type Synthesize = (pieces: readonly string[]) => readonly Int16Array[]

export interface CoreOptions {
  readonly respond: Responder
  /** The only accepted key. Default: every non-empty key. */
  readonly apiKey?: string | undefined
  /** Names (`gemini-2.5-flash`) or patterns of the models that exist. */
  readonly models: readonly (string | RegExp)[]
  /** Milliseconds between two streamed pieces, unless a script changes the pace. */
  readonly paceMs: number
  readonly transcribe?: Transcribe | undefined
  readonly synthesize: Synthesize
  readonly log: (line: string) => void
}

/** The part of an emulator that its REST and Live servers share. */
export interface EmulatorCore extends Omit<CoreOptions, 'respond'> {
  readonly gates: Gates
  /** Returns the actions for a prompt. Rejects with an `EmulatorError` (`bad-script`, `no-reply`) for the client. */
  respond(prompt: Prompt): Promise<readonly Action[]>
  /** `model` with or without the `models/` prefix. */
  hasModel(model: string): boolean
  checkKey(key: string | null | undefined): 'accepted' | 'missing' | 'invalid'
  /** Resolves after `ms`. Rejects when the signal aborts. */
  pause(ms: number, signal: AbortSignal): Promise<void>
  newId(): string
}

export function createCore(options: CoreOptions): EmulatorCore {
  return {
    ...options,
    gates: createGates(),
    async respond(prompt) {
      const actions = await options.respond(prompt)
      if (actions) return actions
      throw new EmulatorError('no-reply', describeNoReply(prompt))
    },
    hasModel(model) {
      const name = model.replace(/^models\//, '')
      return options.models.some((known) =>
        typeof known === 'string' ? known === name : name.search(known) >= 0,
      )
    },
    checkKey(key) {
      if (!key) return 'missing'
      return options.apiKey === undefined || options.apiKey === key ? 'accepted' : 'invalid'
    },
    async pause(ms, signal) {
      signal.throwIfAborted()
      if (ms > 0) await sleep(ms, undefined, { signal })
    },
    newId: () => randomUUID(),
  }
}

function describeNoReply(prompt: Prompt): string {
  const lastPart = prompt.contents.at(-1)?.parts?.at(-1)
  const shown = JSON.stringify(lastPart ?? null).slice(0, 200)
  return `gemini-emulator: no responder replied to this prompt, which ends with ${shown}. Add an exchange to the scenario, or add a responder with firstOf(…).`
}

/** Named points at which a reply waits until the test releases it. */
interface Gates {
  /** Resolves when the gate is released, or immediately if it is. Rejects when the signal aborts. */
  wait(gate: string, signal: AbortSignal): Promise<void>
  release(gate: string): void
  /** Closes every gate. Pending waits continue. */
  reset(): void
}

function createGates(): Gates {
  const released = new Set<string>()
  const waiting = new Map<string, Set<() => void>>()
  return {
    async wait(gate, signal) {
      signal.throwIfAborted()
      if (released.has(gate)) return
      const { promise, resolve, reject } = defer<void>()
      const waiters = waiting.get(gate) ?? new Set()
      waiting.set(gate, waiters.add(resolve))
      const abort = () => reject(signal.reason)
      signal.addEventListener('abort', abort, { once: true })
      try {
        await promise
      } finally {
        signal.removeEventListener('abort', abort)
        waiters.delete(resolve)
        if (waiters.size === 0 && waiting.get(gate) === waiters) waiting.delete(gate)
      }
    },
    release(gate) {
      released.add(gate)
      for (const resolve of waiting.get(gate) ?? []) resolve()
    },
    reset() {
      released.clear()
    },
  }
}
