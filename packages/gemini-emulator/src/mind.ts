import type { Content, FunctionDeclaration } from './wire/content.ts'

/** What a mind is asked: the conversation so far and what the model may use. */
export interface Prompt {
  readonly mode: 'rest' | 'live'
  readonly model: string
  readonly systemInstruction: string
  readonly contents: readonly Content[]
  readonly functions: readonly FunctionDeclaration[]
  /** Whether the caller asked for thoughts (`thinkingConfig.includeThoughts`). */
  readonly includeThoughts: boolean
  /** How far the caller lets the model call functions (`toolConfig.functionCallingConfig.mode`); AUTO when absent. */
  readonly callMode?: CallMode
}

/** Whether the model may call functions, must, or must not. */
export type CallMode = 'AUTO' | 'ANY' | 'NONE' | 'VALIDATED'

/**
 * One thing the model does. A mind answers a prompt with a sequence of acts; the REST and the Live side
 * render the same acts on their own wire.
 */
export type Act =
  /** Speaks; streamed piece by piece. `pieces` fixes the split, otherwise words (or characters of Japanese) are used. */
  | { readonly type: 'say'; readonly text: string; readonly pieces?: readonly string[] }
  | { readonly type: 'think'; readonly text: string; readonly pieces?: readonly string[] }
  /**
   * Calls a function. Neighbouring calls go out together, as one parallel call; `separate` sends this one in a message
   * of its own.
   */
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
  /** Sources of a grounded answer. */
  | {
      readonly type: 'ground'
      readonly sources: readonly { readonly uri: string; readonly title: string }[]
    }
  /** Waits before the next act. */
  | { readonly type: 'pause'; readonly ms: number }
  /** Waits until the test calls `emulator.release(gate)`: a point to synchronise on, without clocks. */
  | { readonly type: 'wait'; readonly gate: string }
  /** Changes the pace: milliseconds between two streamed pieces from here on. */
  | { readonly type: 'pace'; readonly ms: number }
  /** Ends with another finish reason than STOP, for example MAX_TOKENS or SAFETY. */
  | { readonly type: 'finish'; readonly reason: string }
  /** REST: the prompt is blocked, no candidate is returned (`promptFeedback.blockReason`). */
  | { readonly type: 'block'; readonly reason: string }
  /** REST: an error body with this status; after the first piece it is sent into the open stream. */
  | {
      readonly type: 'fail'
      readonly status: number
      readonly message: string
      readonly retryAfterSeconds?: number
    }
  /** Cuts the TCP connection. */
  | { readonly type: 'drop' }
  /** Live: closes the socket. */
  | { readonly type: 'close'; readonly code: number; readonly reason: string }
  /** Live: announces the end of the connection and closes it after `timeLeftMs`. */
  | { readonly type: 'go-away'; readonly timeLeftMs: number }
  /** Live: takes back the calls that are still unanswered. */
  | { readonly type: 'cancel' }
  /** Sends this JSON as it stands: a stream chunk on REST, a server message on Live. */
  | { readonly type: 'raw'; readonly message: unknown }

/** Decides what the model does. Pure: the same prompt gives the same acts; `undefined` passes the prompt on. */
export type Mind = (
  prompt: Prompt,
) => readonly Act[] | undefined | Promise<readonly Act[] | undefined>
