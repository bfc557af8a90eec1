import { act, render, screen } from '@testing-library/react'
import { afterEach, expect, test, vi } from 'vitest'

import type { AdkUIMessage } from '../../src/client/index.ts'
import { AdkProvider, ConnectionNotice, MessageList } from '../../src/react/index.ts'
import type { MessageListProps } from '../../src/react/components/message-list.tsx'
import { type Language, LANGUAGES } from './support/languages.ts'
import { answer, approvalPart, payment } from './support/messages.ts'

afterEach(() => void vi.useRealTimers())

const QUESTION: AdkUIMessage = { id: 'u1', role: 'user', parts: [{ type: 'text', text: 'Hi' }] }
const text = (words: string) => ({ type: 'text' as const, text: words })
const describePayment = (): string => 'Send $50'

/** Shows messages and records what a screen reader would read: each text of the live region. */
function show(first: MessageListProps, locale: Language = 'en') {
  const page = (props: MessageListProps) => (
    <AdkProvider labels={LANGUAGES[locale]} describeCall={describePayment}>
      <MessageList {...props} />
    </AdkProvider>
  )
  const said: string[] = []
  let before = ''
  const listen = (): void => {
    const region = document.querySelector('.adk-messages + [aria-live=polite]')
    const now = region?.textContent ?? ''
    if (now !== '' && now !== before) said.push(now)
    before = now
  }
  const view = render(page(first))
  listen()
  return {
    said,
    change: (messages: readonly AdkUIMessage[], status: string) => {
      view.rerender(page({ ...first, messages, status }))
      listen()
    },
  }
}

test('[RE883] a reply is announced once, when it is complete', () => {
  const { said, change } = show({ messages: [], status: 'ready' })
  change([QUESTION], 'submitted')
  for (const words of ['It', 'It is', 'It is 42.'])
    change([QUESTION, answer(text(words))], 'streaming')
  expect(said).toEqual([])
  change([QUESTION, answer(text('It is 42.'))], 'ready')
  change([QUESTION, answer(text('It is 42.'))], 'ready')
  expect(said).toEqual(['Assistant: It is 42.'])
  expect(screen.getByRole('log').getAttribute('aria-live')).toBe('off')
  // The same words again are another reply.
  const again: AdkUIMessage = { ...QUESTION, id: 'u2' }
  change([QUESTION, answer(text('It is 42.')), again], 'submitted')
  change(
    [QUESTION, answer(text('It is 42.')), again, { ...answer(text('It is 42.')), id: 'answer-2' }],
    'ready',
  )
  expect(said).toHaveLength(2)
})

test('[RE883] what the conversation contains when it is opened is not announced', () => {
  const { said } = show({ messages: [QUESTION, answer(text('It is 42.'))] })
  expect(said).toEqual([])
})

test.each([
  ['en', 'Assistant: One moment. Waiting for your decision. Payment: Send $50 Medium risk'],
  ['ja', 'アシスタント: One moment. 承認を待っています。 Payment: Send $50 中リスク'],
] as const)(
  '[RE883] an approval is announced with what it does when it appears, also while the stream stays open, in %s',
  (locale, sentence) => {
    const { said, change } = show({ messages: [QUESTION], status: 'submitted' }, locale)
    const asked = [text('One moment.'), payment(), approvalPart()]
    change([QUESTION, answer(...asked)], 'streaming')
    expect(said).toEqual([sentence])
    const approval = { id: 'approval-1', approved: true } as const
    const done = payment({ state: 'output-available', output: {}, approval })
    const decided = [text('One moment.'), done, approvalPart({ state: 'approved' })]
    change([QUESTION, answer(...decided, text('Sent.'))], 'streaming')
    change([QUESTION, answer(...decided, text('Sent.'))], 'ready')
    expect(said.at(-1)).toMatch(/: Sent\.$/)
    expect(said).toHaveLength(2)
  },
)

test('[RE883] an approval that waits when the conversation is opened is announced', () => {
  const { said } = show({
    messages: [QUESTION, answer(text('One moment.'), payment(), approvalPart())],
  })
  expect(said).toEqual(['Waiting for your decision. Payment: Send $50 Medium risk'])
})

test('[RE883] nothing is announced over a spoken conversation', () => {
  const voice = { state: { state: 'listening' }, subscribe: () => () => undefined }
  const { said, change } = show({ messages: [QUESTION], status: 'submitted', voice })
  change([QUESTION, answer(text('It is 42.'), payment(), approvalPart())], 'ready')
  expect(said).toEqual([])
})

test.each([
  ['en', 'Connected'],
  ['ja', '接続済み'],
] as const)('[RE378] a connection that is back is announced, in %s', (locale, sentence) => {
  const chat = { messages: [], status: 'ready', unconfirmed: new Set(), reconnect: vi.fn() }
  const notice = (state: 'lost' | 'open') => (
    <AdkProvider labels={LANGUAGES[locale]}>
      {/* The notice reads nothing else of the chat. */}
      <ConnectionNotice chat={{ ...chat, connection: { state } } as never} />
    </AdkProvider>
  )
  const view = render(notice('open'))
  const status = screen.getByRole('status')
  expect(status.textContent).toBe('')
  view.rerender(notice('lost'))
  view.rerender(notice('open'))
  expect(status.textContent).toBe(sentence)
  expect(status.querySelector(':not(.adk-hidden)')).toBeNull()
})

test('[RE883] the text of an announcement does not stay as a second copy of the reply', () => {
  vi.useFakeTimers()
  const { change } = show({ messages: [QUESTION], status: 'submitted' })
  change([QUESTION, answer(text('It is 42.'))], 'ready')
  const region = document.querySelector('.adk-messages + [aria-live=polite]')
  expect(region?.textContent).toBe('Assistant: It is 42.')
  act(() => void vi.advanceTimersByTime(10_000))
  expect(region?.textContent).toBe('')
})
