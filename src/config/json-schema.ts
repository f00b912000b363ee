import * as z from 'zod';
import { schema } from './schema.ts';

/** Returns the JSON Schema of a configuration file. Every key has a default, so no group of keys is required. */
export function jsonSchema(): Record<string, unknown> {
  return z.toJSONSchema(schema, {
    io: 'input',
    override({ zodSchema, jsonSchema: json }) {
      const isGroup = zodSchema instanceof z.ZodObject && Object.values(zodSchema.shape).every(hasDefault);
      if (isGroup) delete json.required;
    },
  });
}

/** Whether a key may be absent: it has a default, or is a group of keys that all have one. */
function hasDefault(part: unknown): boolean {
  return part instanceof z.ZodDefault || (part instanceof z.ZodObject && Object.values(part.shape).every(hasDefault));
}
