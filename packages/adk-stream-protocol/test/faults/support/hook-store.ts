import type { AuditEvent } from '../../../src/approvals/audit-entry.ts'
import type { Store } from '../../../src/store/index.ts'
import type { Reached } from './payment-server.ts'

/** What each change of an approval is called here. */
const MOMENTS: Partial<Record<AuditEvent['type'], string>> = {
  approved: 'decision',
  denied: 'decision',
  started: 'claim',
  succeeded: 'outcome',
  failed: 'outcome',
}

/** Makes the store tell before and after it writes what belongs to an approval's life. */
export function hookStore(store: Store, reached: Reached): Store {
  const { approvals, sessions } = store
  const insert = approvals.insert.bind(approvals)
  approvals.insert = (approval, ...rest) =>
    between('question', approval.chat.chatId, () => insert(approval, ...rest))
  const replace = approvals.replace.bind(approvals)
  approvals.replace = (transition) => {
    const moment = MOMENTS[transition.entry.event.type]
    const work = () => replace(transition)
    return moment ? between(moment, transition.next.chat.chatId, work) : work()
  }
  const replaceAll = approvals.replaceAll.bind(approvals)
  approvals.replaceAll = (transitions) =>
    transitions.toReversed().reduce(
      (work, { entry, next }) =>
        () => {
          const moment = MOMENTS[entry.event.type]
          return moment ? between(moment, next.chat.chatId, work) : work()
        },
      () => replaceAll(transitions),
    )()
  const appendEvent = sessions.appendEvent.bind(sessions)
  sessions.appendEvent = (request) => {
    const isResponse = JSON.stringify(request.event.customMetadata ?? {}).includes('"decided":')
    const work = () => appendEvent(request)
    return isResponse ? between('response', request.session.id, work) : work()
  }
  return store

  async function between<Result>(
    moment: string,
    chatId: string,
    work: () => Promise<Result>,
  ): Promise<Result> {
    await reached(`before ${moment}`, chatId)
    const result = await work()
    await reached(`after ${moment}`, chatId)
    return result
  }
}
