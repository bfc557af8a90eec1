import type { OpenModule } from '../module.ts'
import { createReplyDecision } from './reply-decisions.ts'
import { understandReply } from './understand-reply.ts'

/** Short messages that decide an approval, typed or spoken, such as "yes" and "no". */
export const openReplies: OpenModule<object> = () => ({
  readDecisions: (core) => (reply) => {
    const meaning = understandReply(reply.words)
    return meaning && createReplyDecision(core, { reply, approved: meaning === 'approve' })
  },
})
