import { z } from 'zod'

import { AboutChat } from '../../relay/server-requests.ts'

const AboutApproval = z.object({ approvalId: z.string() })

/** Replies when the turns of all messages of a live session are open. */
export const WHEN_OPENED = { name: 'live-opened', body: AboutChat, reply: z.literal(true) }

/**
 * Gives up the live session of a chat. Replies when its lease has ended, or why the session stays. `userMessageId`: the message that the
 * session is needed for.
 */
export const RELEASE = {
  name: 'release-live',
  body: AboutChat.extend({
    need: z.enum(['input', 'speech', 'watch']),
    userMessageId: z.string().optional(),
  }),
  reply: z.enum(['released', 'in-use', 'busy']),
}

/** Continues a call of a live session after its decision. Replies with false if the session is not there. */
export const TAKE_DECISION = { name: 'live-decided', body: AboutApproval, reply: z.boolean() }

/** Asks whether a live session has the call of an approval. */
export const HAS_CALL = { name: 'live-holds', body: AboutApproval, reply: z.boolean() }

/** Gives the output of a browser tool to a live session. Replies with false if no call of it needs the output. */
export const TAKE_OUTPUT = {
  name: 'live-output',
  body: AboutChat.extend({
    output: z.object({ toolCallId: z.string(), result: z.unknown() }),
    /** Whether the reply waits until the output is stored, or cannot be. */
    untilStored: z.boolean(),
  }),
  reply: z.boolean(),
}
