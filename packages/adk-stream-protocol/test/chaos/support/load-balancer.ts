import { connect, createServer, type Socket } from 'node:net'

import { listen } from '../../../../../test/support/listen.ts'
import type { Random } from './random.ts'

/** What a network may do to the connections of one person. */
export const NETWORK_FAULTS = ['cut', 'lose-answers', 'drop-all'] as const
export type NetworkFault = (typeof NETWORK_FAULTS)[number]

/** The address of a deployment: connects each connection of one person to any of its servers. */
export class LoadBalancer implements AsyncDisposable {
  readonly #server = createServer((client) => this.#connect(client))
  readonly #sockets = new Set<Socket>()
  readonly #urls: () => readonly string[]
  readonly #random: Random
  #drops: 'nothing' | 'answers' | 'all' = 'nothing'
  #port = 0

  private constructor(urls: () => readonly string[], random: Random) {
    this.#urls = urls
    this.#random = random
  }

  static async open(urls: () => readonly string[], random: Random): Promise<LoadBalancer> {
    const balancer = new LoadBalancer(urls, random)
    balancer.#port = await listen(balancer.#server)
    return balancer
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`
  }

  /** Loses what is under way in one or both directions. `cut` ends this. */
  start(fault: NetworkFault): void {
    if (fault === 'cut') this.cut()
    else this.#drops = fault === 'drop-all' ? 'all' : 'answers'
  }

  /** Ends all connections. New ones work. */
  cut(): void {
    this.#drops = 'nothing'
    for (const socket of this.#sockets) socket.destroy()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  #connect(client: Socket): void {
    const urls = this.#urls()
    if (urls.length === 0) return void client.destroy()
    const { port, hostname } = new URL(this.#random.pick(urls))
    const upstream = connect(Number(port), hostname)
    for (const socket of [client, upstream]) {
      this.#sockets.add(socket)
      socket.on('error', () => undefined)
      socket.on('close', () => this.#sockets.delete(socket))
    }
    client.on('data', (data: Buffer) => {
      if (this.#drops !== 'all') upstream.write(data)
    })
    upstream.on('data', (data: Buffer) => {
      if (this.#drops === 'nothing') client.write(data)
    })
    upstream.on('close', () => client.destroy())
    client.on('close', () => upstream.destroy())
  }
}
