import type { BaseSessionService } from '@google/adk'

/** Returns the session service with another `appendEvent`. Everything else is the service's own. */
export function interceptAppend<Service extends BaseSessionService>(
  service: Service,
  appendEvent: BaseSessionService['appendEvent'],
): Service {
  return new Proxy(service, {
    get(target, name) {
      if (name === 'appendEvent') return appendEvent
      const value: unknown = Reflect.get(target, name)
      // Private fields exist on the service itself, not on the proxy.
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
}
