import type { ClientFrameOf } from '../../protocol/client-frame.ts'
import type { FindObserver } from '../transports/transport.ts'
import type { ReconnectingSocket } from './reconnecting-socket.ts'

type TextFrame = ClientFrameOf<'text'> & { readonly messageId: string }

interface Dependencies {
  readonly socket: () => ReconnectingSocket
  readonly findObserver: FindObserver
  /** Called if a text cannot be sent, or if it is unknown whether it arrived. */
  readonly onRefused: () => void
}

/** Texts that the server has not read. A lost socket loses what it has accepted, so each text is followed by a ping. */
export interface PendingTexts {
  readonly size: number
  send(frame: TextFrame): void
  onOpen(): void
  onPong(nonce: string): void
  failAll(): void
}

export function createPendingTexts({
  socket,
  findObserver,
  onRefused,
}: Dependencies): PendingTexts {
  const all = new Map<string, { readonly frame: TextFrame; mayHaveArrived: boolean }>()
  /** The ids of the texts that `check` looks up: another socket must not send them a second time. */
  const checking = new Set<string>()
  const transmit = (frame: TextFrame): void => {
    const pending = all.get(frame.messageId)
    if (!pending || !socket().send(frame)) return
    pending.mayHaveArrived = true
    socket().send({ type: 'ping', nonce: frame.messageId })
  }
  /** Sends a text again if the stored messages do not contain it. */
  const check = async (frame: TextFrame): Promise<void> => {
    const { id, messageId } = frame
    if (checking.has(messageId)) return
    checking.add(messageId)
    const storedIds = await findObserver(id)
      ?.reload()
      .catch(() => undefined)
    checking.delete(messageId)
    if (storedIds && !storedIds.includes(messageId)) return transmit(frame)
    if (all.delete(messageId) && !storedIds) onRefused()
  }
  return {
    get size() {
      return all.size
    },
    send: (frame) => {
      all.set(frame.messageId, { frame, mayHaveArrived: false })
      socket().open()
      transmit(frame)
    },
    onOpen: () => {
      for (const { frame, mayHaveArrived } of all.values())
        if (mayHaveArrived) void check(frame)
        else transmit(frame)
    },
    onPong: (nonce) => void all.delete(nonce),
    failAll: () => {
      const { size } = all
      all.clear()
      for (let index = 0; index < size; index += 1) onRefused()
    },
  }
}
