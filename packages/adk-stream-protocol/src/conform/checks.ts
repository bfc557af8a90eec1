import type { Trial } from './trial.ts'
import { Failure, Skipped } from './trial.ts'

/** A property of a backend with approvals. `check` throws a `Failure` or `Skipped`. */
export interface Check {
  readonly name: string
  readonly title: string
  readonly check: (trial: Trial) => Promise<void>
}

/** What a backend with approvals has to do, seen from a stock client. Each check has a chat of its own. */
export const CHECKS: readonly Check[] = [
  {
    name: 'order',
    title: 'the streams before and after a decision have the documented order',
    check: async (trial) => {
      await trial.expectAnswer('in a new chat')
      await trial.ask()
      await trial.chat.answer(true)
      const [fault] = await trial.chat.findFaults()
      if (fault !== undefined) throw new Failure(`The order is wrong: ${fault}.`)
    },
  },
  {
    name: 'ask',
    title: 'a call that needs approval waits, and the client shows it',
    check: (trial) => trial.ask(),
  },
  {
    name: 'approve',
    title: 'an approved call runs once, and the client shows its result',
    check: async (trial) => {
      await trial.ask()
      await trial.chat.answer(true)
      trial.expectNoError('after the approval')
      await trial.expectExecutions(1, 'after one approval')
      if (trial.chat.results.length === 0) throw new Failure('The client shows no result.')
      if (trial.chat.pending.length > 0) throw new Failure('The client still shows the approval.')
      await trial.expectAnswer('after the approval')
    },
  },
  {
    name: 'deny',
    title: 'a denied call does not run, and the chat goes on',
    check: async (trial) => {
      await trial.ask()
      await trial.chat.answer(false)
      trial.expectNoError('after the denial')
      await trial.expectExecutions(0, 'after a denial')
      await trial.expectAnswer('after the denial')
      await trial.expectExecutions(0, 'after a denial and another message')
    },
  },
  {
    name: 'repeat',
    title: 'an approval that is sent again has no effect',
    check: async (trial) => {
      trial.requireCounter()
      await trial.ask()
      await trial.chat.answer(true)
      await trial.expectExecutions(1, 'after one approval')
      await trial.chat.requests.repeat(3)
      await trial.expectExecutions(1, 'after the approval was sent three more times')
    },
  },
  {
    name: 'race',
    title: 'an approval that several tabs send at once runs the call once',
    check: async (trial) => {
      trial.requireCounter()
      await trial.ask()
      await trial.prepareApproval()
      await trial.chat.requests.repeat(4)
      await trial.expectExecutions(1, 'after four tabs had approved at once')
    },
  },
  {
    name: 'contradict',
    title: 'an approval after a denial has no effect',
    check: async (trial) => {
      trial.requireCounter()
      await trial.ask()
      const body = await trial.prepareApproval()
      await trial.chat.answer(false)
      await trial.chat.requests.repeat(1, { body })
      await trial.expectExecutions(0, 'after a denial and a later approval')
    },
  },
  {
    name: 'changed',
    title: 'a client cannot change the arguments that a person has approved',
    check: async (trial) => {
      trial.requireCounter()
      await trial.ask()
      const other = `${trial.key}-changed`
      trial.chat.requests.changeNext = (body) => body.replaceAll(trial.key, other)
      await trial.chat.answer(true)
      await trial.expectExecutions(0, 'with arguments that the client has changed', other)
    },
  },
  {
    name: 'invented',
    title: 'an approval that the backend never asked for runs nothing',
    check: async (trial) => {
      trial.requireCounter()
      await trial.ask()
      const other = `${trial.key}-invented`
      const approval = await trial.prepareApproval()
      const { pending, calls } = trial.chat
      const body = [...calls, ...pending.filter((id) => !calls.some((call) => id.includes(call)))]
        .reduce((text, id) => text.replaceAll(id, `${id}-invented`), approval)
        .replaceAll(trial.key, other)
      await trial.chat.requests.repeat(1, { body })
      await trial.expectExecutions(0, 'for an approval that a client has invented', other)
      await trial.expectExecutions(0, 'for an approval that a client has invented')
    },
  },
  {
    name: 'foreign',
    title: 'another person who knows the ids cannot approve',
    check: async (trial) => {
      const { strangerHeaders } = trial.backend
      if (!strangerHeaders) throw new Skipped('needs --stranger, the headers of another person')
      trial.requireCounter()
      await trial.ask()
      await trial.prepareApproval()
      const { last } = trial.chat.requests
      const headers = { ...last?.headers, ...strangerHeaders }
      await trial.chat.requests.repeat(1, { headers })
      await trial.expectExecutions(0, 'after another person had approved')
      await trial.chat.answer(true)
      await trial.expectExecutions(1, 'after the person had approved')
    },
  },
  {
    name: 'reload',
    title: 'a page that is loaded again shows the approval, and can give it',
    check: async (trial) => {
      await trial.ask()
      const page = await trial.chat.reload()
      if (page.pending.length !== 1)
        throw new Failure(`The page shows ${page.pending.length} approvals after a reload.`)
      await page.answer(true)
      if (page.error !== undefined)
        throw new Failure(`The page shows an error after a reload: ${page.error}`)
      if (trial.isCounted) await trial.expectExecutions(1, 'after a reload and one approval')
      await trial.expectAnswer('after the reload', page)
    },
  },
  {
    name: 'resume',
    title: 'a connection that is lost during the answer loses and repeats nothing',
    check: async (trial) => {
      trial.requireCounter()
      await trial.ask()
      trial.chat.requests.cutNext = () => undefined
      await trial.chat.answer(true)
      await trial.expectExecutions(1, 'although the connection was lost')
      // The page does not know what has arrived, so it sends its answer again.
      await trial.chat.requests.repeat(1)
      await trial.expectExecutions(1, 'after the answer was sent again')
    },
  },
  {
    name: 'stop',
    title: 'after a stop, the next message is answered',
    check: async (trial) => {
      trial.chat.requests.cutNext = (stopped) => {
        trial.chat.stop()
        return stopped
      }
      await trial.chat.send(trial.backend.plainPrompt)
      await trial.expectAnswer('after a stop')
    },
  },
  {
    name: 'bad input',
    title: 'input that is not valid is rejected with a client error',
    check: async (trial) => {
      await trial.ask()
      await trial.prepareApproval()
      for (const body of ['{', '[]', '{"messages":"none"}']) {
        const [status = 0] = await trial.chat.requests.repeat(1, { body })
        if (status < 400 || status > 499)
          throw new Failure(`The body ${body} was answered with ${status}, not with 400 to 499.`)
      }
      await trial.expectExecutions(0, 'for input that is not valid')
    },
  },
  {
    name: 'error',
    title: 'after a run that has failed, the next message is answered',
    check: async (trial) => {
      const { errorPrompt } = trial.backend
      if (errorPrompt === undefined)
        throw new Skipped('needs --error, a message that makes the run fail')
      await trial.chat.send(errorPrompt)
      if (trial.chat.error === undefined) throw new Failure('The client shows no error.')
      await trial.expectAnswer('after an error')
    },
  },
  {
    name: 'write',
    title: 'a message while an approval waits does not run the call',
    check: async (trial) => {
      await trial.ask()
      await trial.chat.writer().send(trial.backend.plainPrompt)
      await trial.expectExecutions(0, 'although nobody has decided')
    },
  },
]
