import { z } from 'zod'

/** A request that servers send to each other, with the schemas of its body and its reply. */
export interface ServerRequest<Body, Reply> {
  readonly name: string
  readonly body: z.ZodType<Body>
  readonly reply: z.ZodType<Reply>
}

/** Handles the requests of one name. Throws if the body is not a valid one. */
export interface ServerRequestHandler {
  readonly name: string
  readonly handle: (body: unknown) => Promise<unknown>
}

/** Asks another server, and waits for its reply. Rejects with `unavailable` if it does not reply in time. */
export type AskServer = <Body, Reply>(
  server: string,
  request: ServerRequest<Body, Reply>,
  body: Body,
  timeoutMs?: number,
) => Promise<Reply>

export const AboutChat = z.object({
  chat: z.object({ appName: z.string(), principalId: z.string(), chatId: z.string() }),
})

/** The lock of a chat. A request that arrives late does not concern the turn that has locked the chat since. */
const AboutLock = AboutChat.extend({ token: z.string() })

/** Stops the turn that has locked a chat, or only that of one message. Replies when it is settled, with false if there is none. */
export const STOP_CHAT = {
  name: 'stop-chat',
  body: AboutLock.extend({ messageId: z.string().optional() }),
  reply: z.boolean(),
}

/**
 * Stops the turn that has locked a chat if it has no reader, or waits for the answer to a question, unless it replies to the user message
 * with the given id. Replies whether it runs on.
 */
export const STOP_UNWATCHED = {
  name: 'stop-unwatched',
  body: AboutLock.extend({ userMessageId: z.string().optional() }),
  reply: z.union([z.boolean(), z.literal('repeated')]),
}

/** Stops a published turn, or only if no server reads it. Replies when it is settled, with false if it continues. */
export const STOP_TURN = {
  name: 'stop-turn',
  body: z.object({ turnId: z.string(), ifUnwatched: z.boolean() }),
  reply: z.boolean(),
}

export function onRequest<Body, Reply>(
  { name, body }: ServerRequest<Body, Reply>,
  handle: (body: Body) => Promise<Reply>,
): ServerRequestHandler {
  return { name, handle: (sent) => handle(body.parse(sent)) }
}

/** Handles a request. Throws if no handler has its name. */
export async function handleRequest(
  handlers: readonly ServerRequestHandler[],
  name: string,
  body: unknown,
): Promise<unknown> {
  const known = handlers.find((handler) => handler.name === name)
  if (!known)
    throw new TypeError(
      `Another server has sent the request ${name}, which this version does not know.`,
    )
  return known.handle(body)
}
