import type { BaseTool } from '@google/adk'
import { z } from 'zod'

import { browserTool } from '../../src/server/index.ts'
import { assistant } from './agents.ts'
import type { Browser } from './browser.ts'
import type { ChatMessage, ChatPart } from './chat-probe.ts'
import type { ServeOptions } from './serve.ts'

const Position = z.object({ latitude: z.number(), longitude: z.number() })
export const TOKYO = { latitude: 35.7, longitude: 139.7 }

interface LocateOptions {
  gated?: boolean | (() => Promise<boolean>)
  timeoutMs?: number
  output?: z.ZodType
}

/** A browser tool that returns the location. */
export function locationTool({ gated = false, ...rest }: LocateOptions = {}): BaseTool {
  return browserTool({
    name: 'get_location',
    description: 'Where the person is.',
    parameters: z.object({}),
    output: Position,
    requireConfirmation: gated,
    ...rest,
  })
}

/** A browser tool that changes the music. */
export function musicTool(): BaseTool {
  return browserTool({
    name: 'change_bgm',
    description: 'Changes the music.',
    parameters: z.object({ track: z.number() }),
    output: z.object({ success: z.boolean(), track: z.number() }),
  })
}

export function locate(options: LocateOptions = {}): Omit<ServeOptions, 'recorded'> {
  const tools = [locationTool(options)]
  return { agent: (model) => assistant(model, { tools }) }
}

export const ASK = '[[call get_location {}]][[then]][[say There you are.]]'

/** Sends the request. Returns the assistant message that the client then has. */
export async function ask(
  browser: Browser,
  text = ASK,
  id: string = crypto.randomUUID(),
): Promise<ChatMessage> {
  const message = { id, role: 'user', parts: [{ type: 'text', text }] }
  await (await browser.post('/stream', { id: 'chat-1', messages: [message] })).text()
  return lastMessage(browser)
}

export async function lastMessage(browser: Browser): Promise<ChatMessage> {
  const message = (await browser.messages()).messages.at(-1)
  if (!message) throw new Error('There is no message.')
  return message
}

/** Sends the message with another state of its call, as the AI SDK does. */
export function answer(browser: Browser, message: ChatMessage, change: object): Promise<Response> {
  return browser.post('/stream', withCalls(message, change))
}

/** The request with the location that the page has found. */
export function locatedRequest(message: ChatMessage | undefined, id = 'chat-1') {
  return withCalls(message, { state: 'output-available', output: TOKYO }, id)
}

function withCalls(message: ChatMessage | undefined, change: object, id = 'chat-1') {
  const parts = message?.parts.map((part: ChatPart) =>
    part.toolCallId === undefined ? part : { ...part, ...change },
  )
  return { id, messages: [{ ...message, parts }], messageId: message?.id }
}
