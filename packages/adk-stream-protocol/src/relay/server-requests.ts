import { z } from 'zod'

const Chat = z.object({ appName: z.string(), principalId: z.string(), chatId: z.string() })
const AboutChat = z.object({ chat: Chat })
const AboutApproval = z.object({ approvalId: z.string() })

/** The requests that servers send to each other, and their replies. */
const SERVER_REQUESTS = {
  /** Stops the turn of a chat, or of one message. Replies when it is settled, with false if there is none. */
  'stop-chat': { body: AboutChat.extend({ messageId: z.string().optional() }), reply: z.boolean() },
  /** Stops a turn that waits for the answer to a question. Replies when it is settled, with false if there is none. */
  'stop-asking': { body: AboutChat, reply: z.boolean() },
  /** Stops a published turn, or only if no server reads it. Replies when it is settled, with false if it continues. */
  'stop-turn': {
    body: z.object({ turnId: z.string(), ifUnwatched: z.boolean() }),
    reply: z.boolean(),
  },
  /** Replies when the turns of all messages of a live session are open. */
  'live-opened': { body: AboutChat, reply: z.literal(true) },
  /** Gives up the live session of a chat. Replies when its lease has ended, or why the session stays. */
  'release-live': {
    body: AboutChat.extend({ need: z.enum(['input', 'speech', 'watch']) }),
    reply: z.enum(['released', 'in-use', 'busy']),
  },
  /** Continues a call of a live session after its decision. Replies with false if the session is not there. */
  'live-decided': { body: AboutApproval, reply: z.boolean() },
  /** Asks whether a live session has the call of an approval. */
  'live-holds': { body: AboutApproval, reply: z.boolean() },
  /** Gives the output of a browser tool to a live session. Replies with false if no call of it needs the output. */
  'live-output': {
    body: AboutChat.extend({
      output: z.object({ toolCallId: z.string(), result: z.unknown() }),
      /** Whether the reply waits until the output is stored, or cannot be. */
      untilStored: z.boolean(),
    }),
    reply: z.boolean(),
  },
} as const

type ServerRequests = typeof SERVER_REQUESTS
export type RequestName = keyof ServerRequests
export type RequestBody<Name extends RequestName> = z.infer<ServerRequests[Name]['body']>
export type RequestReply<Name extends RequestName> = z.infer<ServerRequests[Name]['reply']>

/** How a server handles the requests of others. */
export type RequestHandlers = {
  readonly [Name in RequestName]: (body: RequestBody<Name>) => Promise<RequestReply<Name>>
}

/** Asks another server, and waits for its reply. Rejects with `unavailable` if it does not reply in time. */
export type AskServer = <Name extends RequestName>(
  server: string,
  name: Name,
  body: RequestBody<Name>,
  timeoutMs?: number,
) => Promise<RequestReply<Name>>

/** Handles a request. Throws if it is not a valid one. */
export function handleRequest(
  handlers: RequestHandlers,
  name: string,
  body: unknown,
): Promise<unknown> {
  if (!isRequestName(name))
    throw new TypeError(
      `Another server has sent the request ${name}, which this version does not know.`,
    )
  // The schema is that of the handler.
  const handle = handlers[name] as (body: unknown) => Promise<unknown>
  return handle(SERVER_REQUESTS[name].body.parse(body))
}

export function readReply<Name extends RequestName>(
  name: Name,
  reply: unknown,
): RequestReply<Name> {
  // The schema is that of `Name`.
  return SERVER_REQUESTS[name].reply.parse(reply) as RequestReply<Name>
}

function isRequestName(name: string): name is RequestName {
  return Object.hasOwn(SERVER_REQUESTS, name)
}
