import type { BaseSessionService } from '@google/adk'

/** Returns the session service with a different `appendEvent`. */
export function interceptAppend<Service extends BaseSessionService>(
  service: Service,
  appendEvent: BaseSessionService['appendEvent'],
): Service {
  return new Proxy(service, {
    get(target, name) {
      if (name === 'appendEvent') return appendEvent
      const value: unknown = Reflect.get(target, name)
      // Private fields exist on the service, not on the proxy.
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
}
