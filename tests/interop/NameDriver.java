import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.inlong.common.enums.DataProxyErrCode;
import org.apache.inlong.common.msg.AttributeConstants;
import org.apache.inlong.common.msg.MsgType;
import org.apache.inlong.common.util.BasicAuth;

/**
 * What InLong's own classes call things, as a command.
 *
 * <pre>
 *   NameDriver credential ID KEY               the header with which a Manager is asked
 *   NameDriver codes                           the result codes of a DataProxy
 *   NameDriver types                           the message types
 *   NameDriver attributes                      the attributes that mean something to a DataProxy
 * </pre>
 *
 * Prints one JSON object a name.
 */
public class NameDriver {
    private static final Gson JSON = new GsonBuilder().disableHtmlEscaping().create();

    public static void main(String[] words) throws Exception {
        switch (words[0]) {
            case "credential" -> print(BasicAuth.BASIC_AUTH_HEADER, BasicAuth.genBasicAuthCredential(words[1], words[2]));
            case "codes" -> {
                for (DataProxyErrCode one : DataProxyErrCode.values()) print(one.name(), one.getErrCode());
            }
            case "types" -> {
                for (MsgType one : MsgType.values()) print(one.name(), one.getValue());
            }
            case "attributes" -> {
                for (var field : AttributeConstants.class.getFields()) print(field.getName(), field.get(null));
            }
            default -> throw new IllegalArgumentException("unknown command " + words[0]);
        }
    }

    private static void print(String name, Object value) {
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("name", name);
        line.put("value", value);
        System.out.println(JSON.toJson(line));
    }
}
