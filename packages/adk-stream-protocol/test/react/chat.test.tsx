import { Chat } from '@ai-sdk/react'
import { Chat as Chat7 } from '@ai-sdk/react-7'
import { act, render, screen, waitFor } from '@testing-library/react'
import { describe, expect, test, vi } from 'vitest'

import type { AdkApi } from '../../src/client/index.ts'
import { useAdkChat } from '../../src/react/index.ts'
import { TestBridge } from '../approvals/support/test-bridge.ts'
import { callPayment } from '../approvals/support/payments.ts'
import { textOf } from '../support/chat-probe.ts'
import { TestBrowser, testedWays, WAYS } from './support/chat-page.tsx'

const PAY = `${callPayment(50)}[[then]][[say Paid.]]`

test('[RE19] the tests of components run with the version of the AI SDK that they are meant to', () => {
  expect(Object.is(Chat, Chat7)).toBe(process.env['AI_SDK'] === '7')
})

describe.each(testedWays)('over %s', (way) => {
  test('[RE1][RE2] in StrictMode a message is sent once and its answer shown', async () => {
    await using testBridge = await TestBridge.open()
    await using browser = new TestBrowser(testBridge, way)
    const page = browser.show()
    const { sendMessage, stop, approve, recover } = page.chat
    page.say('[[say Hello there.]]')
    await page.until('Hello there.')
    await page.untilReady()
    expect(testBridge.asked).toBe(1)
    expect(page.chat.messages).toHaveLength(2)
    expect(page.chat).toMatchObject({ sendMessage, stop, approve, recover })
    expect(page.errors).toEqual([])
  })

  test('[RE1] a chat that is resumed is asked for once, however often its effects run', async () => {
    await using testBridge = await TestBridge.open()
    await using browser = new TestBrowser(testBridge, way)
    const page = browser.show({ resume: true })
    await waitFor(() => expect(browser.sent.length).toBeGreaterThan(0))
    page.say('[[say Hello.]]')
    await page.until('Hello.')
    await page.untilReady()
    expect(browser.sent.filter((sent) => /^resume$|^GET \/stream\/chat-1/.test(sent))).toHaveLength(
      1,
    )
  })

  test('[RE374] a stopped reply says so at once, and after a reload', async () => {
    await using testBridge = await TestBridge.open()
    await using browser = new TestBrowser(testBridge, way)
    const page = browser.show({ api: browser.api })
    page.say('[[say One.]][[wait never]]')
    await page.until('One.')
    expect(screen.queryByText('Stopped')).toBeNull()
    await act(() => page.chat.stop())
    await waitFor(() => expect(screen.getAllByText('Stopped')).toHaveLength(1))
    page.say('[[say Two.]]')
    await page.until('Two.')
    await page.untilReady()
    const { messages } = await browser.api.loadChat('chat-1')
    const again = browser.show({ messages })
    expect(again.text).toContain('One.Stopped')
    expect(screen.getAllByText('Stopped')).toHaveLength(2)
  })

  test('[RE1080] a reply that was cut off says so at once, and after a reload', async () => {
    await using testBridge = await TestBridge.open()
    await using browser = new TestBrowser(testBridge, way)
    const page = browser.show({ api: browser.api })
    page.say('[[say A cut answer]][[finish MAX_TOKENS]]')
    await page.until('A cut answer')
    await waitFor(() => expect(screen.getAllByText(/^Cut off/)).toHaveLength(1))
    await page.untilReady()
    const { messages } = await browser.api.loadChat('chat-1')
    browser.show({ messages })
    expect(screen.getAllByText(/^Cut off/)).toHaveLength(2)
  })

  test('[RE1080] a reply that failed stays visible after the next message, and after a reload', async () => {
    await using testBridge = await TestBridge.open()
    await using browser = new TestBrowser(testBridge, way)
    const page = browser.show({ api: browser.api })
    page.say('[[finish MALFORMED_FUNCTION_CALL]]')
    await waitFor(() => expect(page.chat.problem?.kind).toBe('mistake'))
    const note = 'No complete reply. The model made a mistake.'
    // The card of the chat says it, with what to do.
    expect(screen.queryByText(note)).toBeNull()
    page.say('[[say Fine again.]]')
    await page.until('Fine again.')
    await page.untilReady()
    expect(page.text).toMatch(/No complete reply\. The model made a mistake\..*Fine again\./s)
    const { messages } = await browser.api.loadChat('chat-1')
    browser.show({ messages })
    expect(screen.getAllByText(note)).toHaveLength(2)
  })

  test('[RE374] a reply that was stopped before it started says so', async () => {
    await using testBridge = await TestBridge.open()
    await using browser = new TestBrowser(testBridge, way)
    const page = browser.show({ api: browser.api })
    page.say('[[wait never]]')
    await waitFor(() => expect(page.chat.status).not.toBe('ready'))
    await act(() => page.chat.stop())
    await waitFor(() => expect(screen.getAllByText('Stopped')).toHaveLength(1))
  })

  // Over HTTP, a request without a network fails at once.
  test.skipIf(way === 'sse')(
    '[RE374] [CL915] a message that was stopped while there was no connection stays, and says so',
    async () => {
      await using testBridge = await TestBridge.open()
      await using browser = new TestBrowser(testBridge, way)
      const page = browser.show({ api: browser.api })
      page.say('[[say One.]]')
      await page.until('One.')
      await page.untilReady()
      browser.isOffline = true
      browser.cut()
      page.say('[[say Two.]]')
      await waitFor(() => expect(page.chat.status).not.toBe('ready'))
      await act(() => page.chat.stop())
      await page.untilReady()
      browser.isOffline = false
      await using another = new TestBrowser(testBridge, 'sse')
      another.show().say('[[say Three.]]')
      await waitFor(() => {
        const message = screen.getByText('[[say Two.]]').closest('article')
        expect(message?.textContent).toContain('Not sent')
      })
    },
  )

  test('[RE5] [DM92] a click approves: the call runs once, the reply continues, and both states are announced', async () => {
    await using testBridge = await TestBridge.open()
    await using browser = new TestBrowser(testBridge, way)
    const page = browser.show()
    page.say(PAY)
    const status = await screen.findByText('Waiting for your decision.')
    expect(status.role).toBe('status')
    await page.click('Approve')
    await waitFor(() => expect(status.textContent).toBe('Approved.'))
    await page.until('Paid.')
    await page.untilReady()
    expect(testBridge.wallet.payments).toEqual([{ amount: 50, recipient: '花子' }])
    expect(page.text).toContain('Approved.')
    expect(page.chat.messages).toHaveLength(2)
    expect(page.errors).toEqual([])
  })

  test('[RE5] the model receives the reason of a denial, and nothing runs', async () => {
    await using testBridge = await TestBridge.open()
    await using browser = new TestBrowser(testBridge, way)
    const page = browser.show()
    page.say(PAY)
    await page.click('Deny…')
    await page.user.keyboard('Too much.{Enter}')
    await page.until('Reason: Too much.')
    await page.untilReady()
    expect(testBridge.wallet.payments).toEqual([])
    expect(testBridge.lastPrompt).toContain('Too much.')
  })

  test('[RE5] the edited arguments run, and are shown next to the requested ones', async () => {
    await using testBridge = await TestBridge.open()
    await using browser = new TestBrowser(testBridge, way)
    const page = browser.show()
    page.say(PAY)
    await page.click('Edit…')
    const amount = await screen.findByLabelText('amount')
    await page.user.clear(amount)
    await page.user.type(amount, '30')
    await page.click('Approve with these changes')
    await page.until('Paid.')
    await page.untilReady()
    expect(testBridge.wallet.payments).toEqual([{ amount: 30, recipient: '花子' }])
    expect(document.querySelector('tr[data-changed="true"]')?.textContent).toBe('amount5030')
  })

  test('[RE5] of two calls each ends as it was decided', async () => {
    await using testBridge = await TestBridge.open()
    await using browser = new TestBrowser(testBridge, way)
    const page = browser.show()
    page.say(`${callPayment(30, 'Alice')}${callPayment(40, 'Bob')}[[then]][[say All done.]]`)
    await waitFor(() => expect(screen.getAllByRole('button', { name: 'Approve' })).toHaveLength(2))
    const [first = '', second = ''] =
      page.chat.messages
        .at(-1)
        ?.parts.flatMap((part) =>
          'approval' in part && part.approval ? [part.approval.id] : [],
        ) ?? []
    await page.chat.deny(second, 'Not Bob.')
    await page.chat.approve(first)
    await page.until('All done.')
    await page.untilReady()
    expect(testBridge.wallet.payments).toEqual([{ amount: 30, recipient: 'Alice' }])
    expect(page.text).toContain('Reason: Not Bob.')
  })

  test('[RE6] the card shows a refused decision and accepts another one; it is not a problem of the chat', async () => {
    await using testBridge = await TestBridge.open()
    await using browser = new TestBrowser(testBridge, way)
    const page = browser.show()
    page.say(PAY)
    await page.click('Edit…')
    const amount = await screen.findByLabelText('amount')
    await page.user.clear(amount)
    await page.user.type(amount, '-1')
    await page.click('Approve with these changes')
    const [refusal] = await screen.findAllByRole('alert')
    expect(refusal?.closest('[data-approval]')).not.toBeNull()
    expect(page.chat.problem).toBeUndefined()
    expect([...page.chat.refusals.values()]).toMatchObject([{ code: 'bad-request' }])
    await page.user.clear(screen.getByLabelText('amount'))
    await page.user.type(screen.getByLabelText('amount'), '20')
    await page.click('Approve with these changes')
    await page.until('Paid.')
    await page.untilReady()
    expect(testBridge.wallet.payments).toEqual([{ amount: 20, recipient: '花子' }])
    expect(page.chat.refusals.size).toBe(0)
  })

  test('[RE7] an approval without a decision is shown as expired', async () => {
    await using testBridge = await TestBridge.open({ approvalDeadlineMs: 300 })
    await using browser = new TestBrowser(testBridge, way)
    const page = browser.show({ api: browser.api })
    page.say(PAY)
    await page.until('Expired: nobody decided in time. Nothing was done.')
    expect(testBridge.wallet.payments).toEqual([])
  })

  test('[RE3] another id is another chat; the previous one continues on the server', async () => {
    await using testBridge = await TestBridge.open()
    await using browser = new TestBrowser(testBridge, way)
    const page = browser.show()
    page.say('[[say One.]][[wait gate]][[say Two.]]')
    await page.until('One.')
    page.rerender({ id: 'chat-2' })
    expect(page.chat.messages).toEqual([])
    page.say('[[say Elsewhere.]]')
    await page.until('Elsewhere.')
    await page.untilReady()
    testBridge.emulator.release('gate')
    await waitFor(async () => {
      const { messages, running } = await browser.api.loadChat('chat-1')
      expect(running).toBe(false)
      expect(JSON.stringify(messages)).toContain('Two.')
    })
    expect(page.text).not.toContain('One.')
    expect(page.chat.attached?.chat.id).toBe('chat-2')
  })

  test('[RE3] another transport is another chat, attached to it', async () => {
    await using testBridge = await TestBridge.open()
    await using browser = new TestBrowser(testBridge, way)
    await using other = new TestBrowser(testBridge, way === 'live' ? 'sse' : 'live')
    const page = browser.show()
    page.say('[[say Before.]]')
    await page.until('Before.')
    await page.untilReady()
    const { messages } = await browser.api.loadChat('chat-1')
    page.rerender({ transport: other.transport, messages })
    expect(page.chat.attached?.channel).toBe(other.transport)
    page.say(PAY)
    await page.click('Approve')
    await page.until('Paid.')
    await page.untilReady()
    expect(page.text).toContain('Before.')
    expect(testBridge.wallet.payments).toHaveLength(1)
  })

  test('[RE3] leaving during a reply stops nothing, and a person who returns sees the rest', async () => {
    await using testBridge = await TestBridge.open()
    await using browser = new TestBrowser(testBridge, way)
    const before = browser.show()
    before.say('[[say One.]][[wait gate]][[say Two.]]')
    await before.until('One.')
    before.leave()
    const { messages } = await browser.api.loadChat('chat-1')
    const after = browser.show({ messages, resume: true })
    await after.until('One.')
    testBridge.emulator.release('gate')
    await after.until('One.Two.')
    await after.untilReady()
    expect(testBridge.asked).toBe(1)
  })

  test('[RE3] a person who returns can decide a pending approval', async () => {
    await using testBridge = await TestBridge.open()
    await using browser = new TestBrowser(testBridge, way)
    const before = browser.show()
    before.say(PAY)
    await screen.findByRole('button', { name: 'Approve' })
    before.leave()
    const { messages } = await browser.api.loadChat('chat-1')
    const after = browser.show({ messages, resume: true })
    await after.click('Approve')
    await after.until('Paid.')
    await after.untilReady()
    expect(testBridge.wallet.payments).toHaveLength(1)
  })
})

test.each(testedWays)('[RE10] a failed answer is a problem with a way on, over %s', async (way) => {
  await using testBridge = await TestBridge.open()
  await using browser = new TestBrowser(testBridge, way)
  const page = browser.show({ api: browser.api })
  page.say('[[fail 429 retry=0]]')
  await screen.findByText('The model is busy')
  expect(page.chat.problem).toMatchObject({ kind: 'rate-limited' })
  const asked = testBridge.asked
  await page.click('Try again')
  await waitFor(() => expect(testBridge.asked).toBeGreaterThan(asked))
})

test.each(testedWays)(
  '[RE2] an api made anew at every rendering is the same one, over %s',
  async (way) => {
    await using testBridge = await TestBridge.open()
    await using browser = new TestBrowser(testBridge, way)
    const page = browser.show({ api: browser.newApi() })
    const { attached, decide, recover } = page.chat
    for (let times = 0; times < 5; times += 1) page.rerender({ api: browser.newApi() })
    expect(page.chat).toMatchObject({ decide, recover })
    expect(page.chat.attached).toBe(attached)
    page.say(PAY)
    await page.click('Approve')
    await page.until('Paid.')
    expect(testBridge.wallet.payments).toHaveLength(1)
  },
)

test('[RE162] over the socket, a decision without a connection waits for it and does not claim to run', async () => {
  await using testBridge = await TestBridge.open()
  await using browser = new TestBrowser(testBridge, 'live')
  const page = browser.show()
  page.say(PAY)
  await screen.findByRole('button', { name: 'Approve' })
  browser.isOffline = true
  browser.cut()
  await waitFor(() => expect(page.chat.connection.state).toBe('lost'))
  await page.click('Approve')
  await page.until('Your approval will be sent when the connection is back. Nothing has run yet.')
  expect(page.text).not.toContain('Approved. Running')
  expect(testBridge.wallet.payments).toEqual([])
  browser.isOffline = false
  await page.until('Paid.')
  expect(testBridge.wallet.payments).toEqual([{ amount: 50, recipient: '花子' }])
  expect([...page.chat.unconfirmed]).toEqual([])
})

test.each([true, false])(
  '[CL371] [RE378] a decision without a connection can be taken back and given again, hold %s',
  async (hold) => {
    await using testBridge = await TestBridge.open()
    await using browser = new TestBrowser(testBridge, 'live', 'hanako', { hold })
    const page = browser.show({ api: browser.api })
    page.say(PAY)
    await screen.findByRole('button', { name: 'Approve' })
    if (!hold) await page.untilReady()
    browser.isOffline = true
    browser.cut()
    await waitFor(() => expect(page.chat.connection.state).not.toBe('open'))
    await page.click('Approve')
    await screen.findByText('Your decision will be sent when the connection is back.')
    await page.click('Take back')
    await screen.findByRole('button', { name: 'Approve' })
    expect([...page.chat.unconfirmed]).toEqual([])
    expect([page.chat.problem, page.chat.refusals.size, page.errors]).toEqual([undefined, 0, []])
    browser.isOffline = false
    await waitFor(() => expect(page.chat.connection.state).not.toBe('lost'))
    expect(testBridge.wallet.payments).toEqual([])
    // The reply that was held open is replayed first.
    if (hold && 'ping' in browser.transport) await browser.transport.ping()
    await page.click('Approve')
    await page.until('Paid.')
    expect(testBridge.wallet.payments).toHaveLength(1)
    expect(screen.queryByText('Take back')).toBeNull()
  },
)

test('[CL530] [RE162] over HTTP, a decision without a connection waits for it, is sent by itself, and counts once', async () => {
  await using testBridge = await TestBridge.open()
  await using browser = new TestBrowser(testBridge, 'sse')
  const page = browser.show({ api: browser.api })
  page.say(PAY)
  await screen.findByRole('button', { name: 'Approve' })
  await page.untilReady()
  await browser.untilLoaded()
  browser.isOffline = true
  await page.click('Approve')
  await page.until('Your approval will be sent when the connection is back. Nothing has run yet.')
  expect(page.text).not.toContain('Approved. Running')
  expect(testBridge.wallet.payments).toEqual([])
  expect([page.chat.problem, page.chat.refusals.size, page.errors]).toEqual([undefined, 0, []])
  browser.isOffline = false
  await page.until('Paid.')
  expect(testBridge.wallet.payments).toEqual([{ amount: 50, recipient: '花子' }])
  expect([...page.chat.unconfirmed]).toEqual([])
})

test('[CL530] over HTTP, a decision whose response was lost is sent again, and counts once', async () => {
  await using testBridge = await TestBridge.open()
  await using browser = new TestBrowser(testBridge, 'sse')
  const page = browser.show({ api: browser.api })
  page.say(PAY)
  await screen.findByRole('button', { name: 'Approve' })
  await page.untilReady()
  browser.losesResponses = true
  await page.click('Approve')
  await waitFor(() => expect(testBridge.wallet.payments).toHaveLength(1))
  await page.until('Paid.')
  await page.untilReady()
  expect(testBridge.wallet.payments).toHaveLength(1)
  expect([page.chat.problem, page.chat.refusals.size]).toEqual([undefined, 0])
})

test('[CL371] [CL530] [RE378] over HTTP, a decision that was not sent can be taken back and given again', async () => {
  await using testBridge = await TestBridge.open()
  await using browser = new TestBrowser(testBridge, 'sse')
  const page = browser.show({ api: browser.api })
  page.say(PAY)
  await screen.findByRole('button', { name: 'Approve' })
  await page.untilReady()
  await browser.untilLoaded()
  browser.isOffline = true
  vi.stubGlobal('navigator', { onLine: false })
  await page.click('Approve')
  await screen.findByText(/Your approval will be sent when the connection is back. Nothing/)
  await page.click('Take back')
  await screen.findByRole('button', { name: 'Approve' })
  await page.untilReady()
  expect([...page.chat.unconfirmed]).toEqual([])
  expect([page.chat.problem, page.chat.refusals.size, page.errors]).toEqual([undefined, 0, []])
  vi.unstubAllGlobals()
  browser.isOffline = false
  await page.click('Approve')
  await page.until('Paid.')
  expect(testBridge.wallet.payments).toHaveLength(1)
  expect(screen.queryByText('Take back')).toBeNull()
})

test('[CL390] [RE390] a card stays in place while its reply is replayed', async () => {
  await using testBridge = await TestBridge.open()
  await using browser = new TestBrowser(testBridge, 'live')
  const page = browser.show({ api: browser.api })
  page.say(PAY)
  const button = await screen.findByRole('button', { name: 'Approve' })
  const before = browser.sent.length
  browser.cut()
  await waitFor(() => expect(browser.sent.slice(before)).toContain('resume'))
  if ('ping' in browser.transport) await browser.transport.ping()
  // A button that was removed meanwhile does not take the click.
  await page.user.click(button)
  await page.until('Paid.')
  expect(testBridge.wallet.payments).toHaveLength(1)
})

test.each(testedWays)(
  '[CL370] [RE377] over %s, a message that found no server is sent by itself when the server is back',
  async (way) => {
    await using testBridge = await TestBridge.open()
    await using browser = new TestBrowser(testBridge, way, 'hanako', { attempts: 2 })
    const page = browser.show({ api: browser.api })
    page.say('[[say One.]]')
    await page.until('One.')
    await page.untilReady()
    browser.isOffline = true
    browser.cut()
    page.say('[[say Two.]]')
    await waitFor(() =>
      expect(page.chat.problem).toEqual({ kind: 'disconnected', lost: 'message' }),
    )
    await screen.findByText('Your message will be sent when the connection is back.')
    browser.isOffline = false
    // The socket is tried again by itself; a request over HTTP when the browser is online again.
    if (way === 'sse') window.dispatchEvent(new window.Event('online'))
    await page.until('Two.')
    await page.untilReady()
    expect(page.chat.problem).toBeUndefined()
    expect(testBridge.asked).toBe(2)
    expect(screen.queryByText(/when the connection is back/)).toBeNull()
  },
)

test.each(WAYS)(
  '[RE377] [CL903] over %s, an edited message that found no server is sent by itself when the server is back',
  async (way) => {
    await using testBridge = await TestBridge.open()
    await using browser = new TestBrowser(testBridge, way, 'hanako', { attempts: 2 })
    const page = browser.show({ api: browser.api })
    page.say('[[say One.]]')
    await page.until('One.')
    await page.untilReady()
    browser.isOffline = true
    browser.cut()
    const messageId = page.chat.messages[0]?.id ?? ''
    void page.chat.sendMessage({ text: '[[say Changed.]]', messageId })
    await waitFor(() =>
      expect(page.chat.problem).toEqual({ kind: 'disconnected', lost: 'message' }),
    )
    browser.isOffline = false
    if (way === 'sse') window.dispatchEvent(new window.Event('online'))
    await waitFor(() => expect(page.chat.problem).toBeUndefined())
    await page.untilReady()
    const { messages } = await browser.api.loadChat('chat-1')
    expect(messages.map(textOf)).toEqual(['[[say Changed.]]', 'Changed.'])
    await waitFor(() => expect(page.chat.messages.map(textOf)).toEqual(messages.map(textOf)))
  },
)

test('[CL370] a decision outlives the attempts after which requests fail', async () => {
  await using testBridge = await TestBridge.open()
  await using browser = new TestBrowser(testBridge, 'live', 'hanako', { attempts: 2 })
  const page = browser.show({ api: browser.api })
  page.say(PAY)
  await screen.findByRole('button', { name: 'Approve' })
  browser.isOffline = true
  browser.cut()
  await waitFor(() => expect(page.chat.connection.attempt ?? 0).toBeGreaterThan(3))
  await page.click('Approve')
  await screen.findByText(/Your approval will be sent when the connection is back. Nothing/)
  const before = page.chat.connection.attempt ?? 0
  await waitFor(() => expect(page.chat.connection.attempt ?? 0).toBeGreaterThan(before + 2))
  browser.isOffline = false
  await page.until('Paid.')
  expect(testBridge.wallet.payments).toHaveLength(1)
})

test.each(testedWays)('[RE163] over %s, the card that waits shows the hint of now', async (way) => {
  await using testBridge = await TestBridge.open({
    approvals: { process_payment: () => ({ hint: `Balance: ${testBridge.wallet.balance}.` }) },
  })
  await using browser = new TestBrowser(testBridge, way)
  const page = browser.show({ api: browser.api })
  page.say(`${callPayment(50, 'Alice')}${callPayment(60, 'Bob')}[[then]][[say Paid.]]`)
  await page.until('Balance: 1000.')
  await page.click('Approve')
  await page.until('Balance: 950.')
  expect(page.text).not.toContain('Balance: 1000.')
})

test('[RE163] several changes of approvals within milliseconds cause one request', async () => {
  await using testBridge = await TestBridge.open()
  await using browser = new TestBrowser(testBridge, 'sse')
  let emit: Parameters<AdkApi['watchChat']>[1] | undefined
  // The events of the chat are those of the test.
  vi.spyOn(browser.api, 'watchChat').mockImplementation((_chatId, listener) => {
    emit = listener
    return () => undefined
  })
  const reads = () => browser.sent.filter((line) => line.startsWith('GET /approvals/')).length
  const page = browser.show({ api: browser.api })
  page.say(PAY)
  await screen.findByRole('button', { name: 'Approve' })
  await waitFor(() => expect(reads()).toBe(1))
  for (const state of ['requested', 'approved', 'started'])
    emit?.({ type: 'approval', approvalId: 'of another call', state })
  await waitFor(() => expect(reads()).toBe(2))
  // A change after that request causes another one.
  emit?.({ type: 'approval', approvalId: 'of another call', state: 'succeeded' })
  await waitFor(() => expect(reads()).toBe(3))
})

test('[RE2] a page that creates its api while rendering stops rendering', async () => {
  await using testBridge = await TestBridge.open()
  await using browser = new TestBrowser(testBridge, 'sse')
  const onRendered = vi.fn()
  function Page() {
    onRendered()
    const { status } = useAdkChat({
      id: 'chat-1',
      transport: browser.transport,
      api: browser.newApi(),
    })
    return <p>{status}</p>
  }
  const view = render(<Page />)
  await screen.findByText('ready')
  expect(onRendered.mock.calls.length).toBeLessThan(10)
  view.unmount()
})
