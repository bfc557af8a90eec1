import { act, fireEvent, render, screen } from '@testing-library/react'
import { userEvent } from '@testing-library/user-event'
import type { ComponentProps } from 'react'
import { beforeEach, describe, expect, test, vi } from 'vitest'

import {
  AdkProvider,
  Composer,
  ja,
  useAdkChat,
  type UseAdkChatOptions,
} from '../../src/react/index.ts'
import { type Person, TestBridge } from '../approvals/support/test-bridge.ts'
import { TestBrowser, WAYS } from './support/chat-page.tsx'

type Props = ComponentProps<typeof Composer>

const user = userEvent.setup()
const input = () => screen.getByRole<HTMLTextAreaElement>('textbox', { name: 'Message' })
const queued = () => screen.queryAllByRole('listitem').map(({ textContent }) => textContent)

/** Shows a composer whose props change. `sent` are the texts that were sent. */
function show(first: Partial<Props> = {}) {
  const sent: string[] = []
  const onSend = vi.fn<Props['onSend']>(({ text }) => void sent.push(text))
  const onStop = vi.fn()
  let props: Props = { onSend, onStop, ...first }
  const page = () => <Composer {...props} />
  const view = render(page())
  const change = (next: Partial<Props>): void => {
    props = { ...props, ...next }
    view.rerender(page())
  }
  return { sent, onSend, onStop, change, leave: view.unmount }
}

beforeEach(() => {
  const stored = new Map<string, string>()
  const storage = {
    getItem: (key: string) => stored.get(key) ?? null,
    setItem: (key: string, value: string) => {
      stored.set(key, value)
      Object.defineProperty(storage, key, { value, enumerable: true, configurable: true })
    },
    removeItem: (key: string) => {
      stored.delete(key)
      Reflect.deleteProperty(storage, key)
    },
  }
  Object.defineProperty(globalThis, 'localStorage', { value: storage, configurable: true })
})

describe('writing', () => {
  test('[RE370] Enter sends, Shift+Enter starts a new line, and an input method keeps its Enter', async () => {
    const { sent } = show()
    await user.type(input(), 'one{Shift>}{Enter}{/Shift}two')
    // The Enter that accepts what an input method suggests.
    fireEvent.keyDown(input(), { key: 'Enter', isComposing: true })
    fireEvent.keyDown(input(), { key: 'Enter', keyCode: 229 })
    expect(sent).toEqual([])
    await user.type(input(), '{Enter}')
    expect(sent).toEqual(['one\ntwo'])
    expect(input().value).toBe('')
    await user.type(input(), '  {Enter}')
    expect(sent).toHaveLength(1)
  })

  test('[RE880] a held Enter key that moved the focus to the input does not send the draft', async () => {
    const { sent } = show()
    await user.type(input(), 'half a sent')
    fireEvent.keyDown(input(), { key: 'Enter', repeat: true })
    expect(sent).toEqual([])
    expect(input().value).toBe('half a sent')
  })

  test('[RE370] messages that are written during a reply are sent one after the other', async () => {
    const { sent, change } = show({ status: 'streaming' })
    await user.type(input(), 'one{Enter}two{Enter}')
    expect(sent).toEqual([])
    expect(queued()).toEqual(['oneTake back', 'twoTake back'])
    expect(screen.getByRole('status').textContent).toContain('Sends when the reply is finished')
    change({ status: 'ready' })
    expect(sent).toEqual(['one'])
    change({ status: 'ready' })
    expect(sent).toEqual(['one'])
    change({ status: 'submitted' })
    change({ status: 'streaming' })
    expect(sent).toEqual(['one'])
    change({ status: 'ready' })
    expect(sent).toEqual(['one', 'two'])
    expect(queued()).toEqual([])
  })

  test('[RE370] after a failed reply, the message waits until a reply succeeds', async () => {
    const { sent, change } = show({ status: 'streaming' })
    await user.type(input(), 'one{Enter}')
    change({ status: 'error' })
    expect(sent).toEqual([])
    expect(screen.getByRole('status').textContent).toContain('because the reply failed')
    change({ status: 'streaming' })
    change({ status: 'ready' })
    expect(sent).toEqual(['one'])
  })

  test('[RE370] Escape and a button move a queued message back to the input', async () => {
    const files = { count: 1, take: () => [PICTURE], restore: vi.fn() }
    const { sent, change } = show({ status: 'streaming', files })
    await user.type(input(), 'one{Enter}two{Enter}th')
    const outside = vi.fn()
    document.body.addEventListener('keydown', outside)
    await user.keyboard('{Escape}')
    document.body.removeEventListener('keydown', outside)
    expect(outside).not.toHaveBeenCalled()
    expect(input().value).toBe('two\nth')
    expect(files.restore).toHaveBeenLastCalledWith([PICTURE])
    await user.click(screen.getByRole('button', { name: 'Take back' }))
    expect(input().value).toBe('one\ntwo\nth')
    expect(document.activeElement).toBe(input())
    change({ status: 'ready' })
    expect(sent).toEqual([])
  })

  test('[RE372] text that is entered during a live reply interrupts it; files are queued', async () => {
    const onInterrupt = vi.fn()
    const { sent, change } = show({ status: 'streaming', onInterrupt })
    await user.type(input(), 'stop that{Enter}')
    expect(onInterrupt).toHaveBeenCalledWith('stop that')
    expect([queued(), sent, input().value]).toEqual([[], [], ''])
    change({ files: { count: 1, take: () => [PICTURE], restore: vi.fn() } })
    await user.type(input(), 'look{Enter}')
    expect(onInterrupt).toHaveBeenCalledTimes(1)
    expect(queued()).toEqual(['lookTake back'])
  })

  test('[RE680] keyboard focus is marked, and the focus of a click or of the page is not', async () => {
    show({ focusOnMount: true })
    const isMarked = () => input().dataset['keyboard'] === 'true'
    await user.type(input(), 'one')
    expect([document.activeElement, isMarked()]).toEqual([input(), false])
    await user.tab()
    await user.tab({ shift: true })
    expect([document.activeElement, isMarked()]).toEqual([input(), true])
    await user.tab()
    expect(isMarked()).toBe(false)
    await user.click(input())
    expect([document.activeElement, isMarked()]).toEqual([input(), false])
  })

  test('[RE680] the key that takes a message back is named in an element of its own', async () => {
    const { change } = show({ status: 'streaming' })
    await user.type(input(), 'one{Enter}')
    const status = screen.getByRole('status')
    expect(status.textContent).toBe('Sends when the reply is finished. Press Esc to take it back.')
    expect(status.querySelector('.adk-key-hint')?.textContent).toBe(' Press Esc to take it back.')
    change({ status: 'error' })
    expect(status.textContent).toBe('Not sent yet, because the reply failed.')
  })

  test('[RE16] the composer is in Japanese', async () => {
    render(
      <AdkProvider labels={ja}>
        <Composer status="streaming" onSend={vi.fn()} onStop={vi.fn()} />
      </AdkProvider>,
    )
    await user.type(screen.getByRole('textbox', { name: 'メッセージ' }), '次{Enter}')
    expect(screen.getByRole('status').textContent).toContain('回答が終わると送信されます')
    expect(screen.getByRole('button', { name: '停止' })).not.toBeNull()
  })
})

describe('stopping', () => {
  test('[RE371] Stop sends nothing, keeps the text and moves the focus to the input', async () => {
    const { sent, onStop, change } = show({ status: 'streaming' })
    await user.type(input(), 'queued{Enter}half a sentence')
    await user.click(screen.getByRole('button', { name: 'Stop' }))
    expect(onStop).toHaveBeenCalledTimes(1)
    expect(document.activeElement).toBe(input())
    change({ status: 'ready' })
    expect(sent).toEqual([])
    expect(input().value).toBe('queued\nhalf a sentence')
  })

  test('[RE371] a reply that ends under the focused button leaves the focus in the input', () => {
    const { change } = show({ status: 'streaming' })
    act(() => screen.getByRole('button', { name: 'Stop' }).focus())
    change({ status: 'ready' })
    expect(document.activeElement).toBe(input())
    expect(screen.queryByRole('button', { name: 'Stop' })).toBeNull()
  })
})

describe('drafts', () => {
  test('[RE373] a draft survives a reload and another chat, with what is queued', async () => {
    const first = show({ draftKey: 'a', status: 'streaming' })
    await user.type(input(), 'one{Enter}two')
    first.change({ draftKey: 'b', status: 'ready' })
    expect([input().value, queued(), first.sent]).toEqual(['', [], []])
    await user.type(input(), 'other')
    first.leave()
    const second = show({ draftKey: 'a' })
    expect(input().value).toBe('one\ntwo')
    second.change({ draftKey: 'b' })
    expect(input().value).toBe('other')
    await user.type(input(), '{Enter}')
    second.leave()
    show({ draftKey: 'b' })
    expect(input().value).toBe('')
  })

  test.each(WAYS)(
    '[RE373] over %s, a person sees their own draft and no draft of another account',
    async (way) => {
      await using testBridge = await TestBridge.open()
      const open = async (person: Person, text: string): Promise<string> => {
        await using browser = new TestBrowser(testBridge, way, person)
        const { api, transport } = browser
        const page = render(<DraftPage api={api} transport={transport} />)
        // The server has not responded yet.
        fireEvent.change(input(), { target: { value: text } })
        await screen.findByText('known')
        const shown = input().value
        page.unmount()
        return shown
      }
      expect(await open('hanako', 'Salary of Hanako')).toBe('Salary of Hanako')
      expect(await open('taro', 'A gift for Hanako')).toBe('A gift for Hanako')
      expect(await open('hanako', 'and more')).toBe('Salary of Hanako\nand more')
      expect(await open('taro', '')).toBe('A gift for Hanako')
    },
  )

  test('[RE373] text and queued messages that were written without a key move under it once', async () => {
    const { sent, change } = show({ draftKey: undefined, status: 'streaming' })
    await user.type(input(), 'one{Enter}two')
    change({ draftKey: 'a' })
    expect([input().value, queued()]).toEqual(['two', [expect.stringContaining('one')]])
    change({ draftKey: 'b' })
    expect([input().value, queued()]).toEqual(['', []])
    change({ draftKey: 'a' })
    expect([input().value, queued(), sent]).toEqual(['one\ntwo', [], []])
  })

  test('[RE373] the newest 30 drafts are kept', async () => {
    const { change } = show()
    for (let chat = 0; chat < 32; chat += 1) {
      vi.spyOn(Date, 'now').mockReturnValue(1_000 + chat)
      change({ draftKey: `chat-${chat}` })
      fireEvent.change(input(), { target: { value: `text ${chat}` } })
    }
    vi.restoreAllMocks()
    change({ draftKey: 'chat-1' })
    expect(input().value).toBe('')
    change({ draftKey: 'chat-2' })
    expect(input().value).toBe('text 2')
  })

  test.each(['throws', 'is missing', 'contains something else'])(
    '[RE373] the composer works if the storage %s',
    async (state) => {
      const value = {
        throws: { getItem: fail, setItem: fail, removeItem: fail },
        'is missing': undefined,
        'contains something else': { getItem: () => '[1', setItem: fail, removeItem: fail },
      }[state]
      Object.defineProperty(globalThis, 'localStorage', { value, configurable: true })
      const { sent } = show({ draftKey: 'a' })
      await user.type(input(), 'one{Enter}')
      expect(sent).toEqual(['one'])
    },
  )
})

/** A chat with drafts. Says when the server has shown who is signed in. */
function DraftPage({ api, transport }: Pick<UseAdkChatOptions, 'api' | 'transport'>) {
  const chat = useAdkChat({ id: 'chat-1', api, transport })
  return (
    <>
      <Composer onSend={() => undefined} draftKey={chat.draftKey} />
      {chat.draftKey !== undefined && <p>known</p>}
    </>
  )
}

const fail = (): never => {
  throw new DOMException('blocked', 'SecurityError')
}

const PICTURE = {
  type: 'file' as const,
  mediaType: 'image/png',
  filename: 'dot.png',
  url: 'data:image/png;base64,AA',
}
