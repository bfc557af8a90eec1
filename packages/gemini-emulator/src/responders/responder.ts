import type { Content, FunctionDeclaration, Part } from '../wire/content.ts'

/** The conversation so far, and what the model may use. */
export interface Prompt {
  readonly mode: 'rest' | 'live'
  readonly model: string
  readonly systemInstruction: string
  readonly contents: readonly Content[]
  readonly functions: readonly FunctionDeclaration[]
  /** Whether the client asked for thoughts (`thinkingConfig.includeThoughts`). */
  readonly includeThoughts: boolean
  /** `toolConfig.functionCallingConfig.mode` of a REST request. Default AUTO. */
  readonly callMode?: CallMode
}

/** Whether the model may, must or must not call functions. */
export type CallMode = 'AUTO' | 'ANY' | 'NONE' | 'VALIDATED'

/** One thing the model does. REST and Live send the same actions, each in its own format. */
export type Action =
  /** Sends text in pieces. `pieces` sets the split; the default is words, or single characters in Japanese. */
  | { readonly type: 'say'; readonly text: string; readonly pieces?: readonly string[] }
  | { readonly type: 'think'; readonly text: string; readonly pieces?: readonly string[] }
  /** Calls a function. Adjacent calls are sent in one message; `separate` sends this one in its own. */
  | {
      readonly type: 'call'
      readonly name: string
      readonly args: Readonly<Record<string, unknown>>
      readonly id?: string
      readonly separate?: boolean
    }
  | { readonly type: 'image'; readonly mimeType: string; readonly data: string }
  | {
      readonly type: 'code'
      readonly language: string
      readonly code: string
      readonly outcome: string
      readonly output: string
    }
  /** Adds sources to the reply. */
  | {
      readonly type: 'ground'
      readonly sources: readonly { readonly uri: string; readonly title: string }[]
    }
  /** Waits before the next action. */
  | { readonly type: 'pause'; readonly ms: number }
  /** Waits until the test calls `emulator.release(gate)`. Synchronises a test without timers. */
  | { readonly type: 'wait'; readonly gate: string }
  /** Sets the time between two pieces from here on, in milliseconds. */
  | { readonly type: 'pace'; readonly ms: number }
  /** Ends the reply with a finish reason other than STOP, such as MAX_TOKENS or SAFETY. */
  | { readonly type: 'finish'; readonly reason: string }
  /** REST: blocks the prompt. The response has `promptFeedback.blockReason` and no candidate, and with `usage: false` no usage. */
  | { readonly type: 'block'; readonly reason: string; readonly usage?: false }
  /** REST: fails with this status. After the first piece, the error is sent in the open stream. */
  | {
      readonly type: 'fail'
      readonly status: number
      readonly message: string
      readonly retryAfterSeconds?: number
    }
  /** Resets the TCP connection. */
  | { readonly type: 'drop' }
  /** Live: closes the socket. */
  | { readonly type: 'close'; readonly code: number; readonly reason: string }
  /** Live: sends `goAway` and closes the connection after `timeLeftMs`. */
  | { readonly type: 'go-away'; readonly timeLeftMs: number }
  /** Live: cancels the pending calls. */
  | { readonly type: 'cancel' }
  /** Sends this JSON unchanged: a stream chunk on REST, a server message on Live. */
  | { readonly type: 'raw'; readonly message: unknown }

/**
 * Decides what the model does for a prompt. Returns `undefined` to leave the prompt to the next responder. Should be pure:
 * the same prompt returns the same actions.
 */
export type Responder = (
  prompt: Prompt,
) => readonly Action[] | undefined | Promise<readonly Action[] | undefined>

/** Combines responders: the first one that returns actions is used. */
export function firstOf(...responders: readonly Responder[]): Responder {
  return async (prompt) => {
    for (const respond of responders) {
      const actions = await respond(prompt)
      if (actions) return actions
    }
    return undefined
  }
}

/** Replies to every prompt: repeats its last message and explains how to script a reply. */
export const fallbackResponder: Responder = ({ contents }) => {
  const received = (contents.at(-1)?.parts ?? []).map(describePart).join(' ').trim()
  const shown = received.length > MAX_LENGTH ? `${received.slice(0, MAX_LENGTH)}…` : received
  return [{ type: 'say', text: `The emulator received: ${shown}\n${HINT}` }]
}

function describePart({ text, functionResponse, inlineData, fileData }: Part): string {
  if (text !== undefined) return text
  if (functionResponse) {
    return `${functionResponse.name} -> ${JSON.stringify(functionResponse.response)}`
  }
  return inlineData?.mimeType ?? fileData?.mimeType ?? '(no text)'
}

const MAX_LENGTH = 200
const HINT = 'To script the reply, send [[say Hello.]] or load a scenario.'
