/** SQL expressions for the current time, in ms. All instances share the clock of the database. */
export interface Clocks {
  /** For deadlines. */
  readonly clock: string
  /** For leases. */
  readonly leaseClock: string
}

export const DATABASE_CLOCKS: Clocks = {
  clock: 'floor(extract(epoch FROM clock_timestamp()) * 1000)::double precision',
  leaseClock: '(extract(epoch FROM clock_timestamp()) * 1000)::double precision',
}
