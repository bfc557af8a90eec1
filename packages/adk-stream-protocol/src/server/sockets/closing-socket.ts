import { WebSocket } from 'ws'

/**
 * A socket that tells when its closing begins, from whichever side. `ws` tells only when the connection is gone: until then, who said
 * goodbye and is slow to hang up would count as somebody who reads.
 */
export class ClosingSocket extends WebSocket {
  onClosing: (() => void) | undefined

  // `ws` answers a client's close by this, too.
  override close(code?: number, data?: string | Buffer): void {
    super.close(code, data)
    this.onClosing?.()
  }
}
